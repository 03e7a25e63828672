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
 *
 * A program may make a part of a thread's stack inaccessible while frames above that part are live: the guard page of a
 * coroutine whose stack lies in an array, for example. Correct unwind rules lead past it, wrong ones may lead into it.
 * After the first such mprotect(2), a walk on a thread's stack checks each page that it reads, too.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/sigsafe/compiler.h"

#define STACK_UNKNOWN UINTPTR_MAX /* not a stack that glibc made: its end is not known */

struct stack_bounds {
    uintptr_t low, high; /* of the stack that the thread's last walk used last */
    /* 0: all of the stack may be read. Otherwise walks check page by page; [low, high) was found to be readable, and
     * this is the end of the thread's stack, or STACK_UNKNOWN. */
    uintptr_t checked_until;
};

/**
 * Finds the bounds of the stack that holds sp. `touched`: the thread has just used the memory at sp, so it is readable.
 * `sealed`: system calls are forbidden. False: the memory at sp may not be readable.
 */
ONE_COPY bool stack_enter(struct stack_bounds *s, uintptr_t sp, bool touched, bool sealed);
/**
 * Checks whether the stack may be read from `from` to `end`, for a walk that checks pages. On a thread's stack, it
 * checks only the last page of the range, which becomes the bounds: a frame may enclose inaccessible pages.
 */
ONE_COPY bool stack_extend_cold(struct stack_bounds *s, uintptr_t from, uintptr_t end, bool sealed);
/** The program makes [from, end) inaccessible. `s`: the bounds of the calling thread. */
void stack_note_protected(struct stack_bounds *s, uintptr_t from, uintptr_t end);

/** Returns whether [from, end) may be read. `from` is at or above the stack pointer of a frame that is walked. */
static inline bool stack_holds(struct stack_bounds *s, uintptr_t from, uintptr_t end, bool sealed)
{
    if (__builtin_expect(from >= s->low && from < end && end <= s->high, 1))
        return true;
    return from < end && s->checked_until && stack_extend_cold(s, from, end, sealed);
}

#endif
