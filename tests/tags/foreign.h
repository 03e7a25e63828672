/* SPDX-License-Identifier: BSD-2-Clause */
/* Code that is compiled without hooks. */
#include <stdbool.h>

void foreign_free(void *p);
extern bool foreign_frees;
extern char foreign_buffer[4096];
