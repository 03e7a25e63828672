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

/** What it returns goes to leave_books(): to count down would wait for the counting up. */
static inline uint8_t enter_books(struct thread *t)
{
    uint8_t outside = t->inside;
    t->inside = outside + 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    return outside;
}

static inline void leave_books(struct thread *t, uint8_t outside)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    t->inside = outside;
}

/** Enters, then looks: after a look outside a handler might fork before we are in. */
static inline bool enter_own_books(struct thread *t, uint8_t *outside)
{
    for (int tries = 0; tries < 2; tries++) {
        *outside = enter_books(t);
        if (process_is_known(t))
            return true;
        leave_books(t, *outside);
        if (!process_settle_cold(t))
            return false;
    }
    return false;
}

#endif
