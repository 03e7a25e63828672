/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TARGET_STACK_CALLS_H
#define TARGET_STACK_CALLS_H

/*
 * Counts the calls of a tag or call site by stack, if a rule of `allium set` requests this.
 *
 * Runs in: target, cold paths. Threads: any, signal handlers included; no lock.
 */

#include <stddef.h>
#include <stdint.h>

#include "target/intern_table.h"
#include "wire/ledger_make.h"

/* The index of the records (account, stack) in a ledger. */
struct stack_calls {
    struct intern known;
};
#define STACK_CALLS_OF(of)                                                                                   \
    {                                                                                                        \
        .known = {.ledger = (of) }                                                                           \
    }

/** Counts a call of the account for `bytes` bytes. False: there is no room, or `stack` (a number) is LEDGER_NONE. */
bool stack_calls_add(struct stack_calls *s, uint32_t account, uint32_t stack, size_t bytes);
/** In a fork child: forgets all records, because the child's ledger is empty. */
void stack_calls_reset(struct stack_calls *s);

#endif
