/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TARGET_STACK_CALLS_H
#define TARGET_STACK_CALLS_H

/*
 * Counts the calls of a tag or call site by stack, while a rule asks for that.
 *
 * Runs in: target, cold paths. Threads: any, signal handlers included; no lock.
 */

#include <stddef.h>
#include <stdint.h>

#include "target/intern_table.h"
#include "wire/ledger_make.h"

/* The records of a ledger. */
struct stack_calls {
    struct intern known;
};
#define STACK_CALLS_OF(of)                                                                                   \
    {                                                                                                        \
        .known = {.ledger = (of) }                                                                           \
    }

/** Counts a call of the account, for so many bytes, by the stack with that number. False: there is no room. */
bool stack_calls_add(struct stack_calls *s, uint32_t account, uint32_t stack, size_t bytes);
/** Forgets all records: in a fork child, whose ledger is empty. */
void stack_calls_reset(struct stack_calls *s);

#endif
