/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TARGET_LEDGER_STACKS_H
#define TARGET_LEDGER_STACKS_H

/*
 * Writes modules, frames and stacks to a ledger. Each of them is written once; afterwards its number stands for it.
 *
 * Runs in: target, cold paths. Threads: any, signal handlers included; no lock.
 */

#include <stdint.h>

#include "target/intern_table.h"
#include "unwind/walk.h"
#include "wire/ledger_make.h"

struct ledger_stacks {
    struct ledger *ledger;
    struct intern frames, stacks;
    struct word_cache *rules;            /* the unwind rules of the walk */
    void (*lost)(enum ledger_loss what); /* is called for a stack that was cut or broken */
};

/**
 * Initialiser of a struct ledger_stacks. The cache of rules is an object of its own: it stays in .bss, while the
 * initialised structure is in .data.
 */
#define LEDGER_STACKS_OF(of, cache, count)                                                                   \
    {                                                                                                        \
        .ledger = (of), .frames = {.ledger = (of)}, .stacks = {.ledger = (of)}, .rules = (cache),            \
        .lost = (count)                                                                                      \
    }

#define LEDGER_STACKS_STRING_MAX 4096u /* longer strings are cut */
/** Adds a copy of the text to the ledger's strings and returns its index. There is no room: 0, the index of "". */
uint32_t ledger_stacks_add_string(struct ledger *l, const char *text);
/** Returns the hash of a stack, computed by walk_cache_hash() from the outermost frame to the innermost. */
uint64_t ledger_stacks_hash(const uint32_t *ids, unsigned depth);
/**
 * Returns the number of a stack, the result of a walk; adds the stack to the ledger if it is new. LEDGER_NONE: there is
 * no room.
 */
uint32_t ledger_stacks_number(struct ledger_stacks *s, const uint32_t *ids, unsigned depth, uint64_t hash,
                              enum walk_end end);
/** In a fork child: forgets all numbers, because the child's ledger is empty. */
void ledger_stacks_reset(struct ledger_stacks *s);
/** Grows the hash tables to `slots` frames and stacks now, because memory may not be available later (seccomp). */
void ledger_stacks_take_room(struct ledger_stacks *s, uint64_t slots);

/** Returns the number of a frame; adds the frame to the ledger if it is new. This is a walk_name_fn. */
uint32_t ledger_stacks_name_frame(void *stacks, uint32_t module, uintptr_t pc, bool exact);

/** Returns a walker that gets frame numbers from ledger_stacks_name_frame(). */
static inline struct walker ledger_stacks_walker(struct ledger_stacks *s)
{
    return (struct walker){
        .cache = s->rules, .name = ledger_stacks_name_frame, .arg = s, .sealed = &s->ledger->sealed};
}

#endif
