/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UNWIND_WALK_H
#define UNWIND_WALK_H

/*
 * Walks a stack by .eh_frame rules, without frame pointers.
 *
 * Runs in: target. Threads: any, signal handlers included. No lock, no allocation; no system call on the stacks of
 * threads (see stack_bounds.h for others).
 *
 * A rule is compiled when its pc is first met and then kept in a cache, packed into one word.
 * Almost every frame needs only the stack pointer and rbp; a stack with a frame that needs more (CFA in another
 * register, hand-written code) is walked again from here with all preserved registers and without the cache.
 *
 * Invariant: reads only within the bounds of the stack, and upwards from the caller's stack pointer.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/sigsafe/word_cache.h"
#include "unwind/stack_bounds.h"

#define WALK_ID_BITS 22
#define WALK_ID_MAX  ((1u << WALK_ID_BITS) - 1)
#define WALK_NO_ID   UINT32_MAX

enum walk_end {
    WALK_WHOLE,   /* reached the outermost frame */
    WALK_CUT,     /* deeper than there was room for */
    WALK_NO_CODE, /* a pc outside every module */
    WALK_NO_RULE, /* a pc its module has no rule for */
    WALK_BROKEN,  /* frames that do not add up, or leave the stack */
    WALK_NO_ROOM, /* a frame could not be named (walk_name_fn said WALK_NO_ID) */
};

/** Where a walk begins: the frame that called the hook. */
struct walk_start {
    uintptr_t pc; /* return address */
    uintptr_t sp; /* its stack pointer after the return */
    uintptr_t fp; /* its rbp */
};

/** The frame that called this function, which must not be inlined. */
#define WALK_CALLER()                                                                                        \
    ((struct walk_start){.pc = (uintptr_t)__builtin_return_address(0),                                       \
                         .sp = (uintptr_t)__builtin_frame_address(0) + 2 * sizeof(void *),                   \
                         .fp = *(const uintptr_t *)__builtin_frame_address(0)})

/** Gives a frame its number (<= WALK_ID_MAX), once for each rule compiled; module is MODULE_NONE outside modules. */
typedef uint32_t (*walk_name_fn)(void *arg, uint32_t module, uintptr_t pc, bool exact);

struct walk_cache;
struct walk_cache_walk;

struct walker {
    struct word_cache *cache; /* of rules, by pc; bit 63 stands for "exact" */
    walk_name_fn name;
    void *arg;
    const uint32_t *sealed; /* != 0: no system calls */
};

/** Writes the numbers of at most `max` frames, innermost first; returns how many. */
unsigned walk_stack(const struct walker *w, struct stack_bounds *stack, const struct walk_start *start,
                    uint32_t *ids, unsigned max, enum walk_end *end);
/**
 * The same with a trail of the thread's, at most WALK_CACHE_MAX frames: their numbers, `depth` of them, which stay until the
 * next walk; on the trail, or in `own` when it could not be used. `generation`: of the numbers; with another one the
 * trail is new.
 */
const uint32_t *walk_along(const struct walker *w, struct walk_cache *trail, struct walk_cache_walk *own,
                           struct stack_bounds *stack, const struct walk_start *start, uint32_t generation,
                           unsigned *depth, enum walk_end *end);
/** From a frame to its caller's. False: it takes more than the stack pointer and rbp, or there is none. */
bool walk_out(const struct walker *w, struct stack_bounds *stack, struct walk_start *at);
/** The same for a frame whose rule is at hand and simple, on a stack that is known; false also where it is not. Writes nothing. */
bool walk_out_known(const struct walker *w, const struct stack_bounds *stack, struct walk_start *at);
/** The number of the frame with this return address alone; WALK_NO_ID when it could not be named. */
uint32_t walk_caller(const struct walker *w, uintptr_t pc);

#endif
