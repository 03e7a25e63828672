/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef STRESS_MANY_STACKS_H
#define STRESS_MANY_STACKS_H

/* Blocks from many different stacks: the books need room. */

#include <stdlib.h>

/** malloc(size) from one of 2^depth stacks, chosen by the low bits of `path`. */
static __attribute__((noinline)) void *make(size_t size, unsigned path, unsigned depth)
{
    void *volatile p;
    if (!depth)
        return malloc(size);
    if (path & 1) {
        p = make(size, path >> 1, depth - 1);
        __asm__ volatile("nop"); /* so that the two stay two */
    } else {
        p = make(size, path >> 1, depth - 1);
    }
    return p;
}

#endif
