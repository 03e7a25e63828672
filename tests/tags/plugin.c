/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>

void *plugin_make(size_t bytes);

void *plugin_make(size_t bytes)
{
    return malloc(bytes);
}
