/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UNWIND_WALK_STATE_H
#define UNWIND_WALK_STATE_H

/*
 * The state of one walk, which walk.c (one-word rules) and walk_full.c (rows with all registers) share. Only these two
 * files include this header.
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
    uint64_t checked;            /* bit i: this walk has checked that module i (< 64) is still loaded */
    struct walk_cache_walk *own; /* NULL: the walk uses no walk cache */
};

/* The frame that the walk has reached. */
struct position {
    uintptr_t pc, sp;
    const uintptr_t *fp_at; /* address of the saved rbp of the frame; read only if it is needed */
    bool exact;             /* a signal interrupted the frame at pc; false: pc is a return address */
};

static inline uint64_t word_at(uintptr_t at)
{
    return *(const uint64_t *)at;
}

/**
 * Moves *at from the signal trampoline to the interrupted frame. False: the signal frame or the interrupted frame is
 * not on a readable stack, or the walk has changed stacks more than STACK_SWITCH_MAX times.
 */
ONE_COPY bool walk_enter_interrupted(struct walk *k, struct position *at);
/**
 * Walks the whole stack again, with all preserved registers and without caches. Begins in walk_full() itself, because
 * the frames from the hook to walk_full() have saved registers of the hook's caller.
 */
ONE_COPY enum walk_end walk_full(struct walk *k, const struct walk_start *start);

#endif
