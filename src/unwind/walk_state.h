/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UNWIND_WALK_STATE_H
#define UNWIND_WALK_STATE_H

/*
 * The state of one walk, which walk.c (rules of one word) and walk_full.c (whole rows) share. Only these two include
 * this.
 *
 * Runs in: target. Threads: each walk has its own.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/sigsafe/compiler.h"
#include "unwind/walk.h"

#define RED_ZONE 128u /* bytes below the stack pointer that an interrupted function may use (ABI) */

struct walk {
    const struct walker *w;
    struct stack_bounds *stack;
    uint32_t *ids;
    unsigned count, max, switches;
    bool sealed;
    uint64_t checked;            /* a bit for each module below 64 that was found to be the loaded one */
    struct walk_cache_walk *own; /* NULL: without a walk cache */
};

/* A place on the walk: before the frame with this pc. */
struct position {
    uintptr_t pc, sp;
    const uintptr_t *fp_at; /* where the frame's rbp was saved; read only if a rule uses it */
    bool exact;             /* the frame was interrupted at pc, which is no return address */
};

static inline uint64_t word_at(uintptr_t at)
{
    return *(const uint64_t *)at;
}

/** From the frame of the signal trampoline to the interrupted frame. False: it is not on a readable stack. */
ONE_COPY bool walk_enter_interrupted(struct walk *k, struct position *at);
/**
 * The whole walk again, with all preserved registers and without caches: first out of our own frames, which preserve
 * the registers that the caller of the hook had.
 */
ONE_COPY enum walk_end walk_full(struct walk *k, const struct walk_start *start);

#endif
