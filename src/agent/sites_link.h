/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_SITES_LINK_H
#define AGENT_SITES_LINK_H

/*
 * The functions by which the rest of the agent reaches the accounts of call sites. liballium-agent-full.so has them
 * (sites/); in liballium-agent.so `sites` is NULL (sites_absent.c). No other file outside sites/ includes a header of
 * sites/.
 *
 * Runs in: target. Threads: any, signal handlers included; no lock.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/hooks/next.h"
#include "agent/thread_state.h"
#include "target/object_map.h"
#include "unwind/walk.h"

/** An object out of the map; `account` 0: it was not in it. */
struct sites_taken {
    struct object object;
    uint64_t usable_bytes;
    uint32_t generation; /* of the process that took it */
};

struct sites {
    /** Finds the functions that the hooks of sites/ stand in front of. Called once, from boot. */
    void (*find_next)(void);
    /** Begins the accounts. Called once, from boot, if the process was started so and the next allocator is known. */
    void (*begin)(void);
    /** Adds the first records to a new ledger. Called by the thread that makes it. */
    void (*begin_ledger)(void);
    /** Initialises the thread's state of the accounts, for a new thread and in a fork child. */
    void (*begin_thread)(struct thread *t);
    /** In the parent, before libc's fork. */
    void (*before_fork)(void);
    /** In a fork child, when it notices that it is one: forgets the parent's objects. */
    void (*become_child)(void);
    /** No system call is made from now on (seccomp). `first`: one may still be made, to make room for later objects. */
    void (*seal)(bool first);
    /** Takes one seal() back. */
    void (*unseal)(void);
    /** Books the object that the call at `from` has allocated; `p` NULL: the call failed. */
    void (*made)(const struct walk_start *from, void *p, size_t size);
    /** Books the object that is about to be freed. */
    void (*gone)(const struct walk_start *from, void *p);
    /** Makes room for the objects that are likely to follow a sampled one. */
    void (*expect_more)(const void *p, size_t size);
    /** Takes `p`, which is about to be reallocated, out of the map. */
    struct sites_taken (*take)(void *p);
    /** Books the reallocation of `old` to `p`; `failed`: `old` is as it was. */
    void (*moved)(const struct walk_start *from, void *old, struct sites_taken taken, void *p, size_t size,
                  bool failed);
    /** Moves the object at `p`, which the tag with that account has just allocated, from its call site to the tag. */
    void (*charge_tag)(const void *p, uint32_t account);
    /** Returns the function that a C++ operator of ours calls in place of `real`. */
#define X(field, symbol) next_new_fn (*instead_##field)(next_new_fn real);
    NEXT_NEW_FORMS(X)
#undef X
#define X(field, symbol) next_delete_fn (*instead_##field)(next_delete_fn real);
    NEXT_DELETE_FORMS(X)
#undef X
};

/** NULL: this library has no accounts of call sites. */
extern const struct sites *const sites __attribute__((visibility("hidden")));
/** The process keeps accounts of call sites: the library has them, ALLIUM_SITES=1 asks for them, there is memory. */
extern uint32_t sites_on __attribute__((visibility("hidden")));

/* The cold halves of hooks call these around the real functions. */
static inline void sites_made(const struct walk_start *from, void *p, size_t size)
{
    if (unlikely(sites_on))
        sites->made(from, p, size);
}

static inline void sites_gone(const struct walk_start *from, void *p)
{
    if (unlikely(sites_on))
        sites->gone(from, p);
}

#endif
