/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_CLOCK_H
#define AGENT_CLOCK_H

/*
 * The clock of the agent, which counts ticks. If the CPU has an invariant time stamp counter, this counter is the
 * clock. Otherwise a tick is a nanosecond of CLOCK_MONOTONIC, which is read through the vdso.
 *
 * Runs in: target. Threads: any.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/sigsafe/atomic.h"
#include "base/sigsafe/clock_ns.h"

/** True: clock_ticks() reads the time stamp counter. False: the clock is CLOCK_MONOTONIC, or is stopped. */
extern bool clock_is_tsc __attribute__((visibility("hidden")));

/**
 * Stops the clock: from now on it always shows the time of this call. To be called before the program forbids itself to
 * read the time stamp counter. Returns false and does nothing if the clock was stopped already.
 */
bool clock_freeze(void);
/** Starts the clock again. Called if the program's attempt to forbid itself to read the counter has failed. */
void clock_thaw(void);
/** The part of clock_ticks() for clock_is_tsc false: returns CLOCK_MONOTONIC in ns, or the time of a stopped clock. */
uint64_t clock_ticks_cold(void);
/** Sets clock_is_tsc. Called once, when the agent is initialised. */
void clock_init(void);

/** Returns the current time in ticks. */
static inline uint64_t clock_ticks(void)
{
#if defined(__x86_64__)
    if (likely(clock_is_tsc))
        return __builtin_ia32_rdtsc();
#endif
    return clock_ticks_cold();
}

#endif
