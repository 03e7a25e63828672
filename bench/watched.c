/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The program that bench/watch looks at: malloc+free pairs, as hot as can be. `watched LIVE_SAMPLES`; each line of
 * input is a size and for how many seconds to go on, and is answered with the nanoseconds that a pair took.
 */
#include <stdio.h>
#include <stdlib.h>

#include "stats.h"

#define BLOCK 1000 /* pairs between two looks at the clock */

static __attribute__((noinline)) void pairs(size_t size)
{
    for (unsigned i = 0; i < BLOCK; i++) {
        void *p = malloc(size);
        __asm__ volatile("" ::"r"(p) : "memory");
        free(p);
    }
}

static double pair_ns(size_t size, double seconds)
{
    double began = stats_now_ns(), now = began, n = 0;
    for (; now < began + seconds * 1e9; n += BLOCK) {
        pairs(size);
        now = stats_now_ns();
    }
    return (now - began) / n;
}

/* Untouched, so only address space. */
static void make_live(unsigned samples)
{
    for (unsigned i = 0; i < samples; i++) {
        volatile char *p = malloc(600 << 10);
        (void)p;
    }
}

int main(int argc, char **argv)
{
    size_t size;
    double seconds;
    make_live(argc > 1 ? (unsigned)atoi(argv[1]) : 0);
    while (scanf("%zu %lf", &size, &seconds) == 2) {
        printf("%.6f\n", pair_ns(size, seconds));
        fflush(stdout);
    }
    return 0;
}
