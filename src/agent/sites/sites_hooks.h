/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_SITES_HOOKS_H
#define AGENT_SITES_HOOKS_H

/*
 * The hooks of the malloc family in processes that keep accounts of call sites (sites.h). The hot halves of hooks.c
 * jump to them. The C++ operators (sites_operators.c) use the functions that are declared here.
 *
 * Runs in: target. Threads: any.
 */

#include "agent/hooks/next.h"
#include "agent/sites/sites.h"

/* The return address of the current function. It lies in the program only if a hook has reached the function by a tail
 * jump. */
#define SITES_CALLER ((uintptr_t)__builtin_return_address(0))

/** Counts the result `p` of the real function for `size` bytes (NULL: it failed), and returns `p`. `pc`: SITES_CALLER
 * of the hook. The hook must return this result, so that the compiler makes a tail jump to the cold function. */
static inline __attribute__((always_inline)) void *sites_book(uintptr_t pc, void *p, size_t size)
{
    bool done = p && (sites_heads_have_size ? sites_allocated_hot(sites_slot_first(pc), pc, p, size, true)
                                            : sites_allocated_hot(sites_slot_first(pc), pc, p, size, false));
    return likely(done) ? p : sites_book_cold(p, size);
}

/** Counts the free of the object for the caller of the hook, then frees the object. The hook must reach this function
 * by a tail jump. */
void sites_free_cold(void *p);

/** Makes the hot halves of hooks.c jump to these hooks. If an exported function of the malloc family bypasses its hot
 * half (see next_entries), makes it jump to a hook as well. */
void sites_hooks_begin(void);

#endif
