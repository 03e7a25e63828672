/* SPDX-License-Identifier: BSD-2-Clause */
/* See twins.c. */
#include <stdlib.h>

#ifdef NEWER
#define BLOCKS 6
#else
#define BLOCKS 4
#endif

extern void *volatile kept;

__attribute__((noinline)) static void make(void)
{
    for (int i = 0; i < BLOCKS; i++)
        kept = malloc(1000);
}

void (*const other_make)(void) = make;
