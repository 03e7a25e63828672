/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_RECALL_H
#define AGENT_RECALL_H

/*
 * Remembers which stack a walk gave, so that a loop that allocates again and again walks once. A walk is decided by
 * where it begins and by the words of the stack that it reads (the return addresses, and rbp where a rule uses it),
 * as long as no module on it can go away. Those words are kept, with the stack they led to: when all are the same, so
 * is the stack. They are compared all at once, while a walk has to wait for each before it knows where the next is.
 *
 * Runs in: target, cold paths. Threads: any, signal handlers included; no lock. An entry that somebody is writing is
 * not looked at.
 * Invariant: reads only between the stack pointer and the end of the thread's own stack, also from an entry half
 * overwritten.
 */

#include <stdbool.h>
#include <stdint.h>

#include "unwind/walk.h"

#define RECALL_WORDS 96u
#define RECALL_NONE  UINT32_MAX
#define RECALL_LOG2  8u

struct recall {
    uint64_t version; /* odd: being written */
    uintptr_t pc, sp, fp;
    uint64_t fp_mask;    /* 0: fp decides nothing */
    uint32_t generation; /* of the process: a fork child's stacks have other numbers */
    uint32_t stack;
    uint32_t cell;   /* the latest of this stack, + 1; a hint: the cell itself tells */
    uint32_t misses; /* of this beginning */
    uint32_t words;
    uint32_t offset[RECALL_WORDS]; /* from sp, bytes */
    uint64_t word[RECALL_WORDS];
} __attribute__((aligned(128))); /* two lines: processors fetch them in pairs */

extern struct recall recall_entries[1u << RECALL_LOG2] __attribute__((visibility("hidden")));

/** The place for walks that begin here. */
static inline struct recall *recall_at(const struct walk_start *start)
{
    return &recall_entries[(start->pc ^ start->sp >> 4) * 0x9e3779b97f4a7c15u >> (64 - RECALL_LOG2)];
}

/** The stack of this walk, or RECALL_NONE. */
uint32_t recall_stack(const struct recall *r, const struct stack_bounds *bounds,
                      const struct walk_start *start, uint32_t generation);
/** Remembers that the walk, a whole one, gave this stack, if its beginning has been seen before. */
void recall_keep(struct recall *r, const struct walker *w, const struct walk_start *start,
                 uint32_t generation, uint32_t stack);

#endif
