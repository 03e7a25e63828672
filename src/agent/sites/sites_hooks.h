/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_SITES_HOOKS_H
#define AGENT_SITES_HOOKS_H

/*
 * The hooks of processes that keep accounts of call sites (sites.h). The hot halves of hooks.c and the C++
 * operators jump to them.
 *
 * Runs in: target. Threads: any.
 */

#include "agent/hooks/next.h"
#include "agent/sites/sites.h"

/* The return address of the function. It lies in the program only if the function is reached by a tail jump. */
#define SITES_CALLER ((uintptr_t)__builtin_return_address(0))

/** Counts the result `p` of the real function (NULL: it failed), and returns `p`. The hook returns it as well, so that
 * the compiler makes a tail jump to the cold function. */
static inline __attribute__((always_inline)) void *sites_book(uintptr_t pc, void *p, size_t size)
{
    bool done = p && (sites_heads_have_size ? sites_allocated_hot(sites_slot_first(pc), pc, p, size, true)
                                            : sites_allocated_hot(sites_slot_first(pc), pc, p, size, false));
    return likely(done) ? p : sites_book_cold(p, size);
}

/** Counts the free of the object, then frees it. The site is the caller of the hook that jumps to this function. */
void sites_free_cold(void *p);

/** Makes the hot halves of hooks.c jump to these hooks. */
void sites_hooks_begin(void);

#endif
