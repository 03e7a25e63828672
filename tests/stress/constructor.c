/* SPDX-License-Identifier: BSD-2-Clause */
/* A library with a constructor, which makes BLOCKS blocks by calls of two depths. */
#include <stdlib.h>

#define BLOCKS 100

static void *volatile keep;

static __attribute__((noinline)) void make(int depth)
{
    if (depth) {
        make(depth - 1);
        __asm__ volatile("");
        return;
    }
    keep = malloc(1000);
    free(keep);
}

static __attribute__((constructor)) void begin(void)
{
    for (int i = 0; i < BLOCKS; i++)
        make(i % 2);
}
