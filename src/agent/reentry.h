/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_REENTRY_H
#define AGENT_REENTRY_H

/*
 * Around everything that touches the ledger, for handlers that fork in the midst of it: what they interrupt goes on in the
 * child, with the books that it began with.
 *
 * Runs in: target. Threads: each its own, with its handlers.
 */

#include "agent/process.h"

/** What it returns goes to ledger_exit(): to count down would wait for the counting up. */
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

/** Enters, then looks: after a look outside a handler might fork before we are in. */
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
