/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TARGET_LEDGER_STACKS_H
#define TARGET_LEDGER_STACKS_H

/*
 * Modules, frames and stacks of a ledger: each is written down once, and has a number from then on.
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
    struct word_cache *rules;            /* of the walk */
    void (*lost)(enum ledger_loss what); /* a stack that was cut, or does not add up */
};

/**
 * The initializer of the struct ledger_stacks of a ledger. The cache of rules stands apart, so that it lies in .bss.
 */
#define LEDGER_STACKS_OF(of, cache, count)                                                                   \
    {                                                                                                        \
        .ledger = (of), .frames = {.ledger = (of)}, .stacks = {.ledger = (of)}, .rules = (cache),            \
        .lost = (count)                                                                                      \
    }

#define LEDGER_STACKS_STRING_MAX 4096u /* longer strings are cut */
/** Index of a copy of the text in the strings, 0 ("") when there is no room. */
uint32_t ledger_stacks_add_string(struct ledger *l, const char *text);
/** A hash of frames, from the outermost one inwards, as walk_cache_hash() makes it. */
uint64_t ledger_stacks_hash(const uint32_t *ids, unsigned depth);
/** Number of the stack that a walk gave; LEDGER_NONE: no room. */
uint32_t ledger_stacks_number(struct ledger_stacks *s, const uint32_t *ids, unsigned depth, uint64_t hash,
                              enum walk_end end);
/** Begins with nothing: in a fork child. */
void ledger_stacks_reset(struct ledger_stacks *s);
/** Room for so many more of each, for when there will be no more memory. */
void ledger_stacks_take_room(struct ledger_stacks *s, uint64_t slots);

/** Gives a frame its number; see walk_name_fn. */
uint32_t ledger_stacks_name_frame(void *stacks, uint32_t module, uintptr_t pc, bool exact);

/** What walks with these numbers of frames. */
static inline struct walker ledger_stacks_walker(struct ledger_stacks *s)
{
    return (struct walker){
        .cache = s->rules, .name = ledger_stacks_name_frame, .arg = s, .sealed = &s->ledger->sealed};
}

#endif
