/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UNWIND_STACK_BOUNDS_H
#define UNWIND_STACK_BOUNDS_H

/*
 * The bounds of the stack that is walked. A walk reads memory within these bounds only.
 *
 * Runs in: target. Threads: each has its own struct stack_bounds (thread-local, zero at first).
 *
 * The end of the main stack comes from the loader's __libc_stack_end, and the bounds of a thread's stack come from the
 * thread descriptor; neither needs a system call. If the stack is another one (of a coroutine or a signal handler),
 * each walk calls sys_can_read(), a system call, for each page after the first, because the stack may have been
 * unmapped since the last walk. In a sealed process (system calls are forbidden), such a walk ends with the first page.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/sigsafe/compiler.h"

struct stack_bounds {
    uintptr_t low, high;   /* of the stack that the thread's last walk used last */
    uintptr_t foreign_end; /* not 0: the bounds are unknown; `low` to foreign_end was found to be readable */
};

/**
 * Finds the bounds of the stack that holds sp. `touched`: the thread has just used the memory at sp, so it is readable.
 * `sealed`: system calls are forbidden. False: the memory at sp may not be readable.
 */
ONE_COPY bool stack_enter(struct stack_bounds *s, uintptr_t sp, bool touched, bool sealed);
/** Checks whether a stack with unknown bounds is readable up to `end`. */
ONE_COPY bool stack_extend_cold(struct stack_bounds *s, uintptr_t end, bool sealed);

/** Returns whether [from, end) may be read. `from` is at or above a stack pointer within these bounds. */
static inline bool stack_holds(struct stack_bounds *s, uintptr_t from, uintptr_t end, bool sealed)
{
    if (__builtin_expect(from >= s->low && from < end && end <= s->high, 1))
        return true;
    return from >= s->low && from < end && s->foreign_end && stack_extend_cold(s, end, sealed);
}

#endif
