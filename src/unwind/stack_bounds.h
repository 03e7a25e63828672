/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UNWIND_STACK_BOUNDS_H
#define UNWIND_STACK_BOUNDS_H

/*
 * Which memory is the stack being walked? Everything the walk reads goes through stack_holds().
 *
 * Runs in: target. Threads: each has its own struct stack_bounds (thread-local, zero at first).
 *
 * The main stack is known from the loader's __libc_stack_end, a thread's from its descriptor, both without a system
 * call. Any other stack (a coroutine's, a signal's) is trusted only page by page, and only for one walk, since it may
 * be unmapped after that: sys_can_read() is one call for each page but the first; none once the process is sealed.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/sigsafe/compiler.h"

struct stack_bounds {
    uintptr_t low, high;   /* of the stack this thread was last seen on */
    uintptr_t foreign_end; /* != 0: an unknown stack, readable from `low` to here as far as is known */
};

/**
 * Settles on the stack that holds sp. `touched`: somebody just used what lies at sp. `sealed`: no system calls. False when
 * nothing is known of it.
 */
ONE_COPY bool stack_enter(struct stack_bounds *s, uintptr_t sp, bool touched, bool sealed);
/** Looks whether an unknown stack goes on to `end`. */
ONE_COPY bool stack_extend_cold(struct stack_bounds *s, uintptr_t end, bool sealed);

/** May [from, end) be read, given that `from` is at or above a stack pointer in these bounds? */
static inline bool stack_holds(struct stack_bounds *s, uintptr_t from, uintptr_t end, bool sealed)
{
    if (__builtin_expect(from >= s->low && from < end && end <= s->high, 1))
        return true;
    return from >= s->low && from < end && s->foreign_end && stack_extend_cold(s, end, sealed);
}

#endif
