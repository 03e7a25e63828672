/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads CLOCK_MONOTONIC, emits an event with what it read, and makes a system call, N times.
 *
 *     trace_order N
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "allium/event.h"

ALLIUM_EVENT(bench, clock, ALLIUM_U64(before_ns));

int main(int argc, char **argv)
{
    const long n = argc > 1 ? atol(argv[1]) : 1000;
    char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (long i = 0; i <= n; i++) { /* the last event ends the last turn */
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        allium_emit(bench, clock,
                    .before_ns = (unsigned long)t.tv_sec * 1000000000 + (unsigned long)t.tv_nsec);
        madvise(page, 4096, MADV_NORMAL);
    }
    return 0;
}
