/* SPDX-License-Identifier: BSD-2-Clause */
#include "foreign.h"

#include <stdlib.h>

bool foreign_frees;
char foreign_buffer[4096];

void foreign_free(void *p)
{
    free(p);
}
