/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BASE_SIGSAFE_CLOCK_NS_H
#define BASE_SIGSAFE_CLOCK_NS_H

/*
 * Reads a clock, in nanoseconds. No other code calls clock_gettime(). If the kernel has a vdso, no system call is made
 * for CLOCK_MONOTONIC and CLOCK_REALTIME.
 *
 * Runs in: target, tool. Threads: any.
 */

#include <stdint.h>
#include <time.h>

/** Returns the time of the clock `id`; 0 if the kernel does not have this clock, or if the time is before the epoch. */
static inline uint64_t clock_ns(clockid_t id)
{
    struct timespec t;
    if (clock_gettime(id, &t) || t.tv_sec < 0)
        return 0;
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#endif
