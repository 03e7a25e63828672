/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TARGET_SPIN_WAIT_H
#define TARGET_SPIN_WAIT_H

/*
 * Waits for another thread to finish something short. The thread that waits yields at first. On a busy machine the
 * other thread may itself wait for a processor: then the waits become sleeps. A wait ends after SPIN_WAIT_MOST_NS,
 * because the other thread may never come back.
 *
 * Runs in: target, cold paths. Threads: any, signal handlers included.
 */

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/sigsafe/clock_ns.h"
#include "base/sigsafe/syscall.h"

#define SPIN_WAIT_YIELDS  100u /* a few are usual */
#define SPIN_WAIT_MOST_NS 2000000000u

/* One wait; {0} at first. */
struct spin_wait {
    uint64_t began_ns;
    uint32_t turns;
};

/**
 * One turn of the wait: a yield or a short sleep; if no system call `may` be made, neither. False: the wait has
 * lasted too long.
 */
static inline bool spin_wait_turn(struct spin_wait *w, bool may)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    if (!w->turns++)
        w->began_ns = now;
    if (may && w->turns <= SPIN_WAIT_YIELDS)
        sys_call(SYS_sched_yield, 0);
    else if (may)
        sys_call(SYS_nanosleep, &moment, NULL);
    return now - w->began_ns < SPIN_WAIT_MOST_NS;
}

#endif
