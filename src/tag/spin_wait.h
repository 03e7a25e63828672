/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TAG_SPIN_WAIT_H
#define TAG_SPIN_WAIT_H

/*
 * Waiting for another thread that is in the midst of something short. On a busy machine it has to wait for a processor
 * itself, which may last much longer than turns of ours take where another processor is free, and turns themselves last
 * where none is.
 *
 * Runs in: target, on its cold paths only. Threads: any, signal handlers included.
 */

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/sigsafe/atomic.h"
#include "base/sigsafe/clock_ns.h"
#include "base/sigsafe/syscall.h"
#include "tag/call_details.h"
#include "target/vm_reserve.h"

#define WAIT_TURNS   100u        /* a few are usual */
#define WAIT_MOST_NS 2000000000u /* then it will not come back */

struct waiting {
    uint64_t began_ns;
    uint32_t turns;
};

/**
 * One turn of others more, or a moment's sleep; false: it was waited for long enough. Begins with {0}. After seccomp
 * nobody is called.
 */
static inline bool spin_turn(struct waiting *w)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    if (!w->turns++)
        w->began_ns = now;
    if (vm_reserve_is_sealed())
        return now - w->began_ns < WAIT_MOST_NS;
    if (w->turns <= WAIT_TURNS)
        sys_call(SYS_sched_yield, 0);
    else
        sys_call(SYS_nanosleep, &moment, NULL);
    return now - w->began_ns < WAIT_MOST_NS;
}

/**
 * Somebody else is at something that has this word while it lasts. Who never comes back, as a vfork child that was
 * killed, is waited for once.
 */
static inline bool spin_while(const uint32_t *what, uint32_t is, bool *in_vain)
{
    struct waiting w = {0};
    while (load_acquire(what) == is)
        if (load_relaxed(in_vain) || !spin_turn(&w)) {
            store_relaxed(in_vain, true);
            return load_acquire(what) != is;
        }
    return true;
}

#endif
