/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_CLOCK_H
#define AGENT_CLOCK_H

/*
 * Ticks: the time stamp counter where it runs at one rate on all CPUs, else CLOCK_MONOTONIC through the vdso.
 *
 * Runs in: target. Threads: any.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/sigsafe/atomic.h"
#include "base/sigsafe/clock_ns.h"

extern bool clock_is_tsc __attribute__((visibility("hidden")));

/** Where the counter may not be read any more: every moment is this one from now on. False: it was so before. */
bool clock_freeze(void);
/** It may be read after all, says who froze it. */
void clock_thaw(void);
/** Ticks where clock_is_tsc is false. */
uint64_t clock_ticks_cold(void);
/** Decides which clock it is; once. */
void clock_init(void);

static inline uint64_t clock_ticks(void)
{
#if defined(__x86_64__)
    if (likely(clock_is_tsc))
        return __builtin_ia32_rdtsc();
#endif
    return clock_ticks_cold();
}

#endif
