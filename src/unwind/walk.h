/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UNWIND_WALK_H
#define UNWIND_WALK_H

/*
 * Walks a stack by the rules of .eh_frame, without frame pointers.
 *
 * Runs in: target. Threads: any, signal handlers included. The walk takes no lock and allocates nothing. It makes no
 * system call while it walks the stack of a thread (see stack_bounds.h for other stacks).
 *
 * When a walk meets a pc for the first time, it compiles the rule of this pc to one word, and caches it. Almost all
 * rules need only the stack pointer and rbp. If a frame needs other registers (as some hand-written code does), the
 * whole stack is walked again, with all preserved registers and without the cache.
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
    WALK_CUT,     /* the stack has more frames than the caller has room for */
    WALK_NO_CODE, /* a pc outside of all modules */
    WALK_NO_RULE, /* a pc without a rule in its module */
    WALK_BROKEN,  /* a CFA that is not above the stack pointer, or a frame that leaves the stack */
    WALK_NO_ROOM, /* walk_name_fn returned WALK_NO_ID for a frame */
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
 * Assigns a number (<= WALK_ID_MAX) to a frame, or returns WALK_NO_ID. Called for each rule that is compiled, and for
 * each frame of walk_full(). `module`: MODULE_NONE if pc is outside of all modules.
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

/** Writes the numbers of at most `max` frames, the innermost first. Returns their count. */
unsigned walk_stack(const struct walker *w, struct stack_bounds *stack, const struct walk_start *start,
                    uint32_t *ids, unsigned max, enum walk_end *end);
/**
 * Walks at most WALK_CACHE_MAX frames with a walk cache of the thread. Returns an array of `*depth` frame numbers. It
 * lies in `cache` or `own`, and is valid until the next walk. `generation`: changes when all earlier frame numbers
 * become invalid (in a fork child).
 */
const uint32_t *walk_along(const struct walker *w, struct walk_cache *cache, struct walk_cache_walk *own,
                           struct stack_bounds *stack, const struct walk_start *start, uint32_t generation,
                           unsigned *depth, enum walk_end *end);
/** Goes from a frame to its caller. False: there is none, or the step needs more than the stack pointer and rbp. */
bool walk_out(const struct walker *w, struct stack_bounds *stack, struct walk_start *at);
/**
 * Goes from a frame to its caller if the rule is cached and needs only rsp and rbp, and if the frame lies within
 * `stack`; else returns false. Changes neither the cache nor `stack`.
 */
bool walk_out_known(const struct walker *w, const struct stack_bounds *stack, struct walk_start *at);
/**
 * Returns the number that walker.name() gives to the frame with the return address `pc`, without a walk. A frame that
 * has no number yet gets one. WALK_NO_ID: walker.name() had none.
 */
uint32_t walk_caller(const struct walker *w, uintptr_t pc);

#endif
