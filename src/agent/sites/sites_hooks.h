/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_SITES_HOOKS_H
#define AGENT_SITES_HOOKS_H

/*
 * The hooks of processes that keep accounts of call sites (sites.h): what the hot halves of hooks.c and the C++
 * operators jump to.
 *
 * Runs in: target. Threads: any.
 */

#include "agent/hooks/next.h"
#include "agent/sites/sites.h"

/* In a function that is reached by a tail jump, so that its return address is the program's. */
#define SITES_CALLER ((uintptr_t)__builtin_return_address(0))

/**
 * Books what the real function gave; NULL: it failed. What its caller returns, so that what is cold is reached by a
 * jump.
 */
static inline __attribute__((always_inline)) void *sites_book(uintptr_t pc, void *p, size_t size)
{
    bool done = p && (sites_heads_tell ? sites_made_hot(sites_slot_first(pc), pc, p, size, true)
                                       : sites_made_hot(sites_slot_first(pc), pc, p, size, false));
    return likely(done) ? p : sites_book_cold(p, size);
}

/** Frees it, for who called whoever jumps to this. */
void sites_free_cold(void *p);

/** Puts them in place of the real functions. */
void sites_hooks_begin(void);

#endif
