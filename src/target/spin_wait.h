/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TARGET_SPIN_WAIT_H
#define TARGET_SPIN_WAIT_H

/*
 * Waits for another thread to finish something short. The waiting thread first yields the processor; after
 * SPIN_WAIT_YIELDS turns it sleeps, because the other thread may itself be waiting for a processor. A wait ends after
 * SPIN_WAIT_MOST_NS, because the other thread may never continue.
 *
 * Runs in: target, cold paths. Threads: any, signal handlers included.
 */

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/sigsafe/clock_ns.h"
#include "base/sigsafe/syscall.h"

#define SPIN_WAIT_YIELDS  100u /* turns; usually a few are enough */
#define SPIN_WAIT_MOST_NS 2000000000u

/* The state of one wait; {0} at its start. */
struct spin_wait {
    uint64_t began_ns;
    uint32_t turns;
};

/**
 * Takes one turn of the wait: yields or sleeps 1 ms; but if `may_call` is false, no system call may be made, and the
 * function returns at once. False: the wait has lasted SPIN_WAIT_MOST_NS.
 */
static inline bool spin_wait_turn(struct spin_wait *w, bool may_call)
{
    const struct timespec millisecond = {.tv_nsec = 1000000};
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    if (!w->turns++)
        w->began_ns = now;
    if (may_call && w->turns <= SPIN_WAIT_YIELDS)
        sys_call(SYS_sched_yield, 0);
    else if (may_call)
        sys_call(SYS_nanosleep, &millisecond, NULL);
    return now - w->began_ns < SPIN_WAIT_MOST_NS;
}

#endif
