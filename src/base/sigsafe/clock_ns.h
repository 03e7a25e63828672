/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BASE_SIGSAFE_CLOCK_NS_H
#define BASE_SIGSAFE_CLOCK_NS_H

/*
 * Reads a clock, in nanoseconds: the one caller of clock_gettime(). For CLOCK_MONOTONIC and CLOCK_REALTIME that is no
 * system call where the kernel has a vdso.
 *
 * Runs in: target, tool. Threads: any.
 */

#include <stdint.h>
#include <time.h>

/** Nanoseconds of the clock `id` (clock_gettime(2)); 0 if the kernel does not have that clock, or before the epoch. */
static inline uint64_t clock_ns(clockid_t id)
{
    struct timespec t;
    if (clock_gettime(id, &t) || t.tv_sec < 0)
        return 0;
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#endif
