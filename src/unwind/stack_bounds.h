/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UNWIND_STACK_BOUNDS_H
#define UNWIND_STACK_BOUNDS_H

/*
 * The bounds of the stack that is walked. Of stacks, a walk reads only the memory within these bounds.
 *
 * Runs in: target. Threads: each has a struct stack_bounds of its own (thread-local, zero at first).
 *
 * The end of the main stack comes from the loader's __libc_stack_end, and the bounds of a thread's stack come from the
 * thread descriptor; neither needs a system call. If the stack is another one (of a coroutine or a signal handler),
 * each walk calls sys_can_read(), a system call, for each page that it reads, except the page in which the walk begins,
 * because the stack may have been unmapped since the last walk. In a sealed process (system calls are forbidden), such
 * a walk ends at the end of the page in which it begins.
 *
 * A program may make a part of the main stack or of a thread's stack inaccessible while frames above that part are in
 * use: the guard page of a coroutine whose stack lies in an array, for example. Correct unwind rules lead past such a
 * page, wrong ones may lead into it. After the first such mprotect(2), walks on the main stack and on threads' stacks
 * check pages in the same way.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/sigsafe/compiler.h"

#define STACK_UNKNOWN UINTPTR_MAX /* neither the main stack nor a thread's: the end of the stack is unknown */

struct stack_bounds {
    uintptr_t low, high; /* bounds of the stack on which the thread's last walk ended; `high` is excluded */
    /* 0: a walk may read all from its stack pointer to `high`. Otherwise walks check page by page: low and high are the
     * bounds of the checked pages, and checked_until is the end of the main or thread's stack, or STACK_UNKNOWN. */
    uintptr_t checked_until;
};

/**
 * Stores in *s the bounds of the stack that holds sp. `touched`: the thread has just used the memory at sp, so that
 * memory is readable. `sealed`: system calls are forbidden. False: the memory at sp may be unreadable, and *s is zero.
 */
ONE_COPY bool stack_enter(struct stack_bounds *s, uintptr_t sp, bool touched, bool sealed);
/**
 * The slow path of stack_holds(), for a walk that checks page by page (checked_until is not 0). On a stack with a known
 * end, only the last page of [from, end) is checked, because a frame may enclose inaccessible pages; this page becomes
 * the bounds. On another stack, all pages up to `end` are checked and added to the bounds.
 */
ONE_COPY bool stack_extend_cold(struct stack_bounds *s, uintptr_t from, uintptr_t end, bool sealed);
/**
 * Called when the program makes [from, end) inaccessible. If a part of [from, end) is on the calling thread's stack,
 * above the stack pointer, all later walks of the process check page by page, and *s, the bounds of the calling thread,
 * are reset.
 */
void stack_note_protected(struct stack_bounds *s, uintptr_t from, uintptr_t end);

/**
 * Returns whether a walk may read [from, end); `from` is at or above the stack pointer of a walked frame, or in its red
 * zone. If the end of the stack is known and pages are checked, the answer is for the last page of the range only.
 */
static inline bool stack_holds(struct stack_bounds *s, uintptr_t from, uintptr_t end, bool sealed)
{
    if (__builtin_expect(from >= s->low && from < end && end <= s->high, 1))
        return true;
    return from < end && s->checked_until && stack_extend_cold(s, from, end, sealed);
}

#endif
