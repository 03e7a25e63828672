/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UNWIND_WALK_H
#define UNWIND_WALK_H

/*
 * Walks a stack by the rules of .eh_frame, without frame pointers.
 *
 * Runs in: target. Threads: any, signal handlers included. It takes no lock and allocates nothing. It makes no system
 * call on the stacks of threads (see stack_bounds.h for other stacks).
 *
 * A rule is compiled when a walk meets its pc for the first time, and is then cached as one word. Almost all rules need
 * only the stack pointer and rbp. If a frame needs more (another register, hand-written code), the whole stack is
 * walked again, with all preserved registers and without the cache.
 *
 * Invariant: the walk reads only within the bounds of the stack, and upwards from the stack pointer of the caller.
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
    WALK_NO_CODE, /* a pc outside of all modules */
    WALK_NO_RULE, /* a pc without a rule in its module */
    WALK_BROKEN,  /* a frame that contradicts the one before, or leaves the stack */
    WALK_NO_ROOM, /* a frame got no number (walk_name_fn returned WALK_NO_ID) */
};

/** The start of a walk: the frame that called the hook. */
struct walk_start {
    uintptr_t pc; /* return address */
    uintptr_t sp; /* the stack pointer of the frame after the return */
    uintptr_t fp; /* the rbp of the frame */
};

/** The frame that called the present function, which must not be inlined. */
#define WALK_CALLER()                                                                                        \
    ((struct walk_start){.pc = (uintptr_t)__builtin_return_address(0),                                       \
                         .sp = (uintptr_t)__builtin_frame_address(0) + 2 * sizeof(void *),                   \
                         .fp = *(const uintptr_t *)__builtin_frame_address(0)})

/**
 * Returns the number of a frame (<= WALK_ID_MAX), or WALK_NO_ID. It is called once for each rule that is compiled.
 * `module`: MODULE_NONE if pc is outside of all modules.
 */
typedef uint32_t (*walk_name_fn)(void *arg, uint32_t module, uintptr_t pc, bool exact);

struct walk_cache;
struct walk_cache_walk;

struct walker {
    struct word_cache *cache; /* of rules; the key is the pc, with bit 63 set for an interrupted frame */
    walk_name_fn name;
    void *arg;
    const uint32_t *sealed; /* not 0: system calls are forbidden */
};

/** Writes the numbers of at most `max` frames, the innermost first. Returns their count. */
unsigned walk_stack(const struct walker *w, struct stack_bounds *stack, const struct walk_start *start,
                    uint32_t *ids, unsigned max, enum walk_end *end);
/**
 * Walks with a cache of the thread, at most WALK_CACHE_MAX frames. Returns their `*depth` numbers, which are valid
 * until the next walk: they lie in the cache, or in `own` if the cache could not be used. `generation`: of the numbers;
 * frames of another generation are not used.
 */
const uint32_t *walk_along(const struct walker *w, struct walk_cache *cache, struct walk_cache_walk *own,
                           struct stack_bounds *stack, const struct walk_start *start, uint32_t generation,
                           unsigned *depth, enum walk_end *end);
/** Goes from a frame to its caller. False: there is none, or the step needs more than the stack pointer and rbp. */
bool walk_out(const struct walker *w, struct stack_bounds *stack, struct walk_start *at);
/**
 * Goes from a frame to its caller if the rule is cached and simple and the bounds of the stack are known; else returns
 * false. It changes neither cache nor bounds.
 */
bool walk_out_known(const struct walker *w, const struct stack_bounds *stack, struct walk_start *at);
/** The number of the frame with this return address, without a walk. WALK_NO_ID: it got none. */
uint32_t walk_caller(const struct walker *w, uintptr_t pc);

#endif
