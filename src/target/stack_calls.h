/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TARGET_STACK_CALLS_H
#define TARGET_STACK_CALLS_H

/*
 * From which stacks the calls of a place came, while that is asked for.
 *
 * Runs in: target, cold paths. Threads: any, signal handlers included; no lock.
 */

#include <stddef.h>
#include <stdint.h>

#include "target/intern_table.h"
#include "wire/ledger_make.h"

/* Of a ledger. */
struct stack_calls {
    struct intern known;
};
#define STACK_CALLS_OF(of)                                                                                   \
    {                                                                                                        \
        .known = {.ledger = (of) }                                                                           \
    }

/**
 * One more of that account, for so many bytes, from the ledger's stack with that number (LEDGER_NONE: it has no room).
 * False: no room.
 */
bool stack_calls_add(struct stack_calls *s, uint32_t account, uint32_t stack, size_t bytes);
/** Begins with nothing: in a fork child. */
void stack_calls_reset(struct stack_calls *s);

#endif
