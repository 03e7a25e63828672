/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_SITES_LINK_H
#define AGENT_SITES_LINK_H

/*
 * The functions by which the rest of the agent calls the code for accounts of call sites (sites/), which only
 * liballium-agent-full.so has; in liballium-agent.so `sites` is NULL (sites_absent.c). No file outside of sites/
 * includes a header of sites/.
 *
 * Runs in: target. Threads: any, signal handlers included; no lock.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/hooks/next.h"
#include "agent/thread_state.h"
#include "target/object_map.h"
#include "unwind/module.h"
#include "unwind/walk.h"

/** An object that was removed from the map of objects. `object.account` 0: the map did not have the object. */
struct sites_taken {
    struct object object;
    uint64_t usable_bytes;
    uint32_t generation; /* process.generation at the removal; a fork child has another one */
};

struct sites {
    /**
     * `allium attach`: reads the settings that the tool has left, in place of those in the environment. False: the
     * agent came with the program, and they are in the environment.
     */
    bool (*read_settings)(void);
    /** Finds the real dlclose(), which a hook of sites/ calls. Called when boot_agent() has found the allocator. */
    void (*find_next)(void);
    /** Starts the accounts. boot_agent() calls it once, if ALLIUM_SITES=1. */
    void (*begin)(void);
    /** Adds the first records to a new ledger. Called by the thread that makes it. */
    void (*begin_ledger)(void);
    /** Initialises the thread's state of the accounts, for a new thread and in a fork child. */
    void (*begin_thread)(struct thread *t);
    /** In the parent, before libc's fork(): stores which part of the sums the child must replace by private memory. */
    void (*before_fork)(void);
    /** In process_update() of a fork child: forgets the parent's objects. */
    void (*become_child)(void);
    /**
     * Before the process enters seccomp: forbids later system calls for the accounts. `first`: the process was not
     * sealed before, so this function may still make system calls, and makes room for later objects.
     */
    void (*seal)(bool first);
    /** Undoes one seal(). */
    void (*unseal)(void);
    /** Counts the object at `p` that the call at `from` has allocated. `p` NULL: counts a failed request. */
    void (*allocated)(const struct walk_start *from, void *p, size_t size);
    /** Counts the free of the object at `p`; the real free() follows. */
    void (*released)(const struct walk_start *from, void *p);
    /** Called for a sample at `p`: populates the map for the next addresses, where more objects are likely to be. */
    void (*expect_more)(const void *p, size_t size);
    /** Removes the object at `p`, which the call at `from` is about to reallocate, from the map of objects. */
    struct sites_taken (*take)(const struct walk_start *from, void *p);
    /**
     * Counts the realloc() of `old` to `p`; `taken` is the result of take(). `failed`: realloc() has left `old` as it
     * was, so the object goes back into the map.
     */
    void (*moved)(const struct walk_start *from, void *old, struct sites_taken taken, void *p, size_t size,
                  bool failed);
    /** Moves the object at `p`, which a tag has just allocated, from its call site to the tag's account. */
    void (*charge_tag)(const void *p, uint32_t account);
    /** sites_unload_is_noticed(): whether hot functions may count at addresses in the module. */
    bool (*notices_unload)(const struct unwind_module *m);
    /**
     * Called before the process, or a child that shares its memory, executes `path`, with an `error` of 0. If that
     * fails, called again, with errno in `error` and a `path` of "".
     */
    void (*executes)(const char *path, int error);
    /** Returns the function that our hook of a C++ operator jumps to: `real`, or a function of sites/ in its place. */
#define X(field, symbol) next_new_fn (*instead_##field)(next_new_fn real);
    NEXT_NEW_FORMS(X)
#undef X
#define X(field, symbol) next_delete_fn (*instead_##field)(next_delete_fn real);
    NEXT_DELETE_FORMS(X)
#undef X
};

/** NULL: this library has no accounts of call sites. */
extern const struct sites *const sites __attribute__((visibility("hidden")));
/** Not 0: the process keeps accounts of call sites. ALLIUM_SITES=1 requests this; it needs memory for the tables. */
extern uint32_t sites_on __attribute__((visibility("hidden")));

/* The cold halves of hooks call these: sites_allocated() after the real function, sites_released() before it. */
static inline void sites_allocated(const struct walk_start *from, void *p, size_t size)
{
    if (unlikely(sites_on))
        sites->allocated(from, p, size);
}

static inline void sites_released(const struct walk_start *from, void *p)
{
    if (unlikely(sites_on))
        sites->released(from, p);
}

#endif
