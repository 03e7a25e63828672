/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_REENTRY_H
#define AGENT_REENTRY_H

/*
 * Marks code that uses the ledger, by `reentry_depth` of the thread. If a signal handler interrupts such code and
 * forks, the code goes on in the child and still uses the pointers to the parent's ledger. While the depth is not 0,
 * process_ensure_current_cold() does not replace these pointers.
 *
 * Runs in: target. Threads: each changes only its own depth, also in its signal handlers.
 */

#include "agent/process.h"

/**
 * Increments the depth, and returns the previous one for ledger_exit(). ledger_exit() stores this value: a decrement
 * would be slower, because the CPU would have to wait for the increment.
 */
static inline uint8_t ledger_enter(struct thread *t)
{
    uint8_t outside = t->reentry_depth;
    t->reentry_depth = outside + 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    return outside;
}

/** Restores the depth that ledger_enter() returned. */
static inline void ledger_exit(struct thread *t, uint8_t outside)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    t->reentry_depth = outside;
}

/**
 * Calls ledger_enter(), and then checks that `process` describes this process: in the other order, a signal handler
 * might fork in between. True: the caller must call ledger_exit(). False: the depth is as it was, and the caller must
 * not use the ledger.
 */
static inline bool ledger_enter_own(struct thread *t, uint8_t *outside)
{
    for (int tries = 0; tries < 2; tries++) {
        *outside = ledger_enter(t);
        if (process_is_known(t))
            return true;
        ledger_exit(t, *outside);
        if (!process_ensure_current_cold(t))
            return false;
    }
    return false;
}

#endif
