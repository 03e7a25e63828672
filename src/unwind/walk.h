/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UNWIND_WALK_H
#define UNWIND_WALK_H

/*
 * Walks a stack by the rules of .eh_frame, without frame pointers.
 *
 * Runs in: target. Threads: any, signal handlers included. The walk takes no lock, allocates nothing and, on the main
 * stack or a thread's stack, makes no system call (see stack_bounds.h for exceptions and other stacks). The function
 * walker.name(), which the walk calls for new frames, may do more.
 *
 * When a walk meets a pc for the first time, it compiles the rule of this pc to one word, and caches this word. Almost
 * all rules need only the stack pointer and rbp. If one word cannot express the rule of a frame (some hand-written code
 * needs other registers), the whole stack is walked again, with all preserved registers and without caches.
 *
 * Invariant: of stacks, the walk reads only within their bounds, upwards from the stack pointer at which it begins.
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
    WALK_CUT,     /* the stack has more frames than the result has room for */
    WALK_NO_CODE, /* the pc of the last frame is outside of all known modules */
    WALK_NO_RULE, /* the module of the last frame has no usable rule for its pc */
    WALK_BROKEN,  /* the rule of the last frame is wrong: its CFA is below the stack pointer, for example */
    WALK_NO_ROOM, /* walker.name() returned WALK_NO_ID for a frame */
};

/** The start of a walk: the frame that called the hook. */
struct walk_start {
    uintptr_t pc; /* return address */
    uintptr_t sp; /* the stack pointer after the hook has returned to the frame */
    uintptr_t fp; /* the rbp of the frame */
};

/** The frame that called the current function, which must not be inlined. */
#define WALK_CALLER()                                                                                        \
    ((struct walk_start){.pc = (uintptr_t)__builtin_return_address(0),                                       \
                         .sp = (uintptr_t)__builtin_frame_address(0) + 2 * sizeof(void *),                   \
                         .fp = *(const uintptr_t *)__builtin_frame_address(0)})

/**
 * Returns the number (<= WALK_ID_MAX) of a frame, or WALK_NO_ID if it cannot have one. Called for each rule that is
 * compiled, and for each frame of walk_full(). `module`: index in unwind_modules; MODULE_NONE if pc is outside of all
 * modules. `exact`: a signal interrupted the frame at pc; false: pc is a return address.
 */
typedef uint32_t (*walk_name_fn)(void *arg, uint32_t module, uintptr_t pc, bool exact);

struct walk_cache;
struct walk_cache_walk;

struct walker {
    struct word_cache *cache; /* rules by pc; bit 63 of the key: a signal interrupted the frame at pc */
    walk_name_fn name;
    void *arg;
    const uint32_t *sealed; /* not 0: system calls are forbidden */
};

/** Stores the numbers of at most `max` frames, the innermost first. Returns their count. *end: why the walk ended. */
unsigned walk_stack(const struct walker *w, struct stack_bounds *stack, const struct walk_start *start,
                    uint32_t *ids, unsigned max, enum walk_end *end);
/**
 * Walks at most WALK_CACHE_MAX frames with a walk cache of the thread. Returns an array of `*depth` frame numbers, the
 * innermost first. The array lies in `cache` or `own`, and is valid until the next walk with them. The `generation`
 * changes when all earlier frame numbers become invalid (in a fork child). *end: why the walk ended.
 */
const uint32_t *walk_along(const struct walker *w, struct walk_cache *cache, struct walk_cache_walk *own,
                           struct stack_bounds *stack, const struct walk_start *start, uint32_t generation,
                           unsigned *depth, enum walk_end *end);
/**
 * Moves *at from a frame to the frame of its caller. False: the frame has no caller, or its rule is not of the kinds
 * RULE_RSP, RULE_RBP and RULE_RBP_DEREF, or leads to a wrong place; *at has no meaning then.
 */
bool walk_out(const struct walker *w, struct stack_bounds *stack, struct walk_start *at);
/**
 * Moves *at from a frame to the frame of its caller if a rule of kind RULE_RSP or RULE_RBP is in the first cache entry
 * for the pc, the module can never be unloaded, and the frame lies within `stack`. Else returns false and leaves *at as
 * it is. Changes neither the cache nor `stack`.
 */
bool walk_out_known(const struct walker *w, const struct stack_bounds *stack, struct walk_start *at);
/**
 * Returns the number that walker.name() gives to the frame with the return address `pc`, without a walk. A frame that
 * has no number yet gets one. WALK_NO_ID: walker.name() had none.
 */
uint32_t walk_caller(const struct walker *w, uintptr_t pc);

#endif
