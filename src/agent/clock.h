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

/**
 * Stops the clock at the present moment, before the program forbids itself to read the counter. False: it had
 * been stopped before.
 */
bool clock_freeze(void);
/** Starts the clock again: the call that was to forbid the counter has failed. */
void clock_thaw(void);
/** The ticks if clock_is_tsc is false. */
uint64_t clock_ticks_cold(void);
/** Chooses the clock; once. */
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
