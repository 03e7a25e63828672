/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_REENTRY_H
#define AGENT_REENTRY_H

/*
 * Marks the code that touches the ledger. If a signal handler interrupts such code and forks, the code goes on in the
 * child with the ledger of the parent; the mark tells the child not to let go of that ledger yet.
 *
 * Runs in: target. Threads: each for itself, and its signal handlers.
 */

#include "agent/process.h"

/** Returns the depth before, for ledger_exit(): a decrement would have to wait for the increment. */
static inline uint8_t ledger_enter(struct thread *t)
{
    uint8_t outside = t->reentry_depth;
    t->reentry_depth = outside + 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    return outside;
}

static inline void ledger_exit(struct thread *t, uint8_t outside)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    t->reentry_depth = outside;
}

/** Enters, and then checks the process: if it checked first, a signal handler might fork between the two. */
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
