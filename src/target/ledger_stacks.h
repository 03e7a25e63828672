/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TARGET_LEDGER_STACKS_H
#define TARGET_LEDGER_STACKS_H

/*
 * Writes modules, frames and stacks to a ledger. Each different one is written once, and then referred to by number.
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
    struct word_cache *rules;            /* the cache of unwind rules for walks */
    void (*lost)(enum ledger_loss what); /* called for each result of a walk that is cut or broken */
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

#define LEDGER_STACKS_STRING_MAX 4096u /* bytes; the rest of a longer string is cut off */
/** Adds a copy of the text to the ledger's strings. Returns its index; 0, the index of "", if there is no room. */
uint32_t ledger_stacks_add_string(struct ledger *l, const char *text);
/** Returns the hash of the frames of a stack, computed by walk_cache_hash() from the outermost to the innermost. */
uint64_t ledger_stacks_hash(const uint32_t *ids, unsigned depth);
/**
 * Returns the number of the stack that is the result of a walk (`ids`, `depth` and `end`); adds the stack to the ledger
 * if it is new. `hash`: ledger_stacks_hash() of the frames. LEDGER_NONE: the ledger has no room.
 */
uint32_t ledger_stacks_number(struct ledger_stacks *s, const uint32_t *ids, unsigned depth, uint64_t hash,
                              enum walk_end end);
/** In a fork child: forgets all numbers, because the child's ledger is empty. */
void ledger_stacks_reset(struct ledger_stacks *s);
/** Grows the hash tables of frames and stacks to `slots` slots each now, because seccomp may forbid it later. */
void ledger_stacks_take_room(struct ledger_stacks *s, uint64_t slots);

/** A walk_name_fn: returns the number of a frame; adds the frame to the ledger if it is new. WALK_NO_ID: no room. */
uint32_t ledger_stacks_name_frame(void *stacks, uint32_t module, uintptr_t pc, bool exact);

/** Returns a walker that gets frame numbers from ledger_stacks_name_frame(). */
static inline struct walker ledger_stacks_walker(struct ledger_stacks *s)
{
    return (struct walker){
        .cache = s->rules, .name = ledger_stacks_name_frame, .arg = s, .sealed = &s->ledger->sealed};
}

#endif
