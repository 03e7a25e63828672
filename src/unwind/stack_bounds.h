/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UNWIND_STACK_BOUNDS_H
#define UNWIND_STACK_BOUNDS_H

/*
 * The bounds of the stack that is walked. A walk reads memory within these bounds only.
 *
 * Runs in: target. Threads: each has its own struct stack_bounds (thread-local, zero at first).
 *
 * The end of the main stack comes from the loader's __libc_stack_end, and the bounds of a thread's stack from the
 * thread descriptor; neither needs a system call. Of another stack (of a coroutine or a signal handler) the pages are
 * checked one by one, and anew for each walk, as the stack may be unmapped in between: sys_can_read() makes one system
 * call for each page but the first. A sealed process makes none, and such a walk ends at the end of the page.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/sigsafe/compiler.h"

struct stack_bounds {
    uintptr_t low, high;   /* of the stack that the thread's last walk began on or led to */
    uintptr_t foreign_end; /* not 0: the stack is unknown, and was found readable from `low` to here */
};

/**
 * Finds the bounds of the stack that holds sp. `touched`: the memory at sp was just used, so it is readable. `sealed`:
 * no system calls. False: the memory at sp may not be readable.
 */
ONE_COPY bool stack_enter(struct stack_bounds *s, uintptr_t sp, bool touched, bool sealed);
/** Checks whether an unknown stack is readable up to `end`. */
ONE_COPY bool stack_extend_cold(struct stack_bounds *s, uintptr_t end, bool sealed);

/** Returns whether [from, end) may be read. `from` is at or above a stack pointer within these bounds. */
static inline bool stack_holds(struct stack_bounds *s, uintptr_t from, uintptr_t end, bool sealed)
{
    if (__builtin_expect(from >= s->low && from < end && end <= s->high, 1))
        return true;
    return from >= s->low && from < end && s->foreign_end && stack_extend_cold(s, end, sealed);
}

#endif
