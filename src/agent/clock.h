/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_CLOCK_H
#define AGENT_CLOCK_H

/*
 * The clock of the agent, in ticks: of the time stamp counter if that runs at one rate on all CPUs, else of
 * CLOCK_MONOTONIC, read through the vdso.
 *
 * Runs in: target. Threads: any.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/sigsafe/atomic.h"
#include "base/sigsafe/clock_ns.h"

extern bool clock_is_tsc __attribute__((visibility("hidden")));

/**
 * Stops the clock: it shows the present time from now on. To be called before the program forbids itself to read the
 * time stamp counter. False: the clock was stopped already.
 */
bool clock_freeze(void);
/** Starts the clock again, because the program's call to forbid the counter has failed. */
void clock_thaw(void);
/** Returns the ticks if clock_is_tsc is false. */
uint64_t clock_ticks_cold(void);
/** Chooses the clock. Called once. */
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
