/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_SITES_LINK_H
#define AGENT_SITES_LINK_H

/*
 * The calls by which the rest of the agent reaches the accounts of call sites. Two sets of sources define these
 * functions: sites/ in liballium-agent-full.so, and sites_absent.c, where they do nothing, in liballium-agent.so. No
 * other file outside sites/ includes a header of sites/.
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

/** This library has accounts of call sites. */
extern const bool sites_linked __attribute__((visibility("hidden")));
/**
 * The process keeps accounts of call sites: the library has them, ALLIUM_SITES=1 asked for them, and there was memory.
 */
extern uint32_t sites_on __attribute__((visibility("hidden")));

/** Finds the functions that the hooks of sites/ stand in front of. Called once, from boot. */
void sites_find_next(void);
/** Begins the accounts. Called once, from boot, if the process was started so and when the next allocator is known. */
void sites_begin(void);
/** Adds the first records to a new ledger. Called by the thread that makes it. */
void sites_begin_ledger(void);
/** Initialises the thread's state of the accounts, for a new thread and in a fork child. */
void sites_begin_thread(struct thread *t);

/** In the parent, before libc's fork. */
void sites_before_fork(void);
/** In a fork child, when it notices that it is one: forgets the parent's objects. */
void sites_become_child(void);
/**
 * No system call is made from now on (seccomp). `first`: one may still be made, to make room for objects that come
 * later.
 */
void sites_seal(bool first);
/** Takes one sites_seal() back. */
void sites_unseal(void);

/** Books the object that the call at `from` has allocated; `p` NULL: the call failed. */
ONE_COPY void sites_made_cold(const struct walk_start *from, void *p, size_t size);
/** Books the object that is about to be freed. */
ONE_COPY void sites_gone_cold(const struct walk_start *from, void *p);
/** Makes room for the objects that are likely to follow a sampled one. */
void sites_expect_more(const void *p, size_t size);

/** An object out of the map; `account` 0: it was not in it. */
struct sites_taken {
    struct object object;
    uint64_t usable_bytes;
    uint32_t generation; /* of the process that took it */
};
/** Takes `p`, which is about to be reallocated, out of the map. */
ONE_COPY struct sites_taken sites_take(void *p);
/** Books the reallocation of `old` to `p`; `failed`: `old` is as it was. */
ONE_COPY void sites_moved(const struct walk_start *from, void *old, struct sites_taken taken, void *p,
                          size_t size, bool failed);

/** Moves the object at `p`, which the tag with that account has just allocated, from its call site to the tag. */
void sites_charge_tag(const void *p, uint32_t account);

/** The function that a C++ operator of ours calls in place of `real`. */
#define X(field, symbol) next_new_fn sites_instead_##field(next_new_fn real);
NEXT_NEW_FORMS(X)
#undef X
#define X(field, symbol) next_delete_fn sites_instead_##field(next_delete_fn real);
NEXT_DELETE_FORMS(X)
#undef X

/* The cold halves of hooks call these around the real functions. */
static inline void sites_made(const struct walk_start *from, void *p, size_t size)
{
    if (unlikely(sites_on))
        sites_made_cold(from, p, size);
}

static inline void sites_gone(const struct walk_start *from, void *p)
{
    if (unlikely(sites_on))
        sites_gone_cold(from, p);
}

#endif
