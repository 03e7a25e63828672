/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_SITES_H
#define AGENT_SITES_H

/*
 * Exact accounts of call sites (ALLIUM_SITES=1). A site is a call instruction that reaches the allocator, identified by
 * its return address. The account of a site counts the objects that it has allocated, those of them that were freed,
 * and the objects that the site itself has freed. Samples are taken as well.
 *
 * Runs in: target. Threads: any, signal handlers included; no lock.
 * Owns: a map of all live objects (target/object_map.h), a table of return addresses, the ledger's sums of sites.
 *
 * The hot functions here are called by the hooks of hooks.c, and call the real functions. An object is in the map from
 * just after the real call that allocated it until just before the call that frees it. So only the thread that
 * allocates or frees the object writes to its entry. A thread adds to its own sums by single instructions, so that a
 * signal handler never finds a sum half done.
 *
 * In a fork child the map and the table of addresses are empty (MADV_WIPEONFORK). So each request takes the cold
 * functions, which know that the parent's sums are not mapped in the child.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/hooks/next.h"
#include "agent/process.h"
#include "agent/sites/site_slots.h"
#include "agent/sites_link.h"
#include "base/sigsafe/atomic.h"
#include "target/object_map.h"
#include "unwind/walk.h"
#include "wire/ledger.h"

/*
 * Each fork child uses the next set of tables. After this many nested forks, the first set is used again. That does
 * harm only if each of these forks ran in a signal handler that had interrupted code which writes to the tables.
 */
#define SITES_GENERATIONS 4u

#define SITES_MOST    (1u << 16)
#define SITES_WRAPPER (1u << 31) /* the site lies in a wrapper: its caller is looked up at each call */
#define SITES_STAYS   (1u << 30) /* the site lies in a wrapper whose module is never unloaded */
/* a flag: the stacks of the site's calls are to be recorded */
#define SITES_STACKS (1u << 29)
#define SITES_PLAIN  (SITES_STACKS - 1)

/*
 * Entries of the map and slots store a site's id, which is another form of its number: id << 6 is the offset of the
 * site's sums in a shard. (64 sites lie in a block that has all shards.)
 */
#define SITES_ID(number) ledger_index_of(number, LEDGER_SITES_TOGETHER)
#define SITES_NUMBER(id) ledger_number_at(id, LEDGER_SITES_TOGETHER)

/* Does the word before each object have its usable size, as in glibc? */
extern uint32_t sites_heads_have_size __attribute__((visibility("hidden")));

/* The functions that struct sites (agent/sites_link.h) has for the rest of the agent. */
void sites_find_next(void);
void sites_begin(void);
void sites_begin_ledger(void);
void sites_begin_thread(struct thread *t);
void sites_before_fork(void);
void sites_become_child(void);
void sites_seal(bool first);
void sites_unseal(void);
ONE_COPY void sites_allocated_cold(const struct walk_start *from, void *p, size_t size);
ONE_COPY void sites_released_cold(const struct walk_start *from, void *p);
void sites_expect_more(const void *p, size_t size);
ONE_COPY struct sites_taken sites_take(void *p);
ONE_COPY void sites_moved(const struct walk_start *from, void *old, struct sites_taken taken, void *p,
                          size_t size, bool failed);
void sites_charge_tag(const void *p, uint32_t account);
#define X(field, symbol) next_new_fn sites_instead_##field(next_new_fn real);
NEXT_NEW_FORMS(X)
#undef X
#define X(field, symbol) next_delete_fn sites_instead_##field(next_delete_fn real);
NEXT_DELETE_FORMS(X)
#undef X

/** sites_allocated_cold() for an object `p` of the caller of the hook that jumps to this function. Returns `p`. */
ONE_COPY void *sites_book_cold(void *p, size_t size);

/**
 * If a function of the allocator has called another function of the family through its symbol, the object was counted
 * for a site in the allocator. Moves the object to the site of the program's call, `from`.
 */
ONE_COPY void sites_recharge_cold(const struct walk_start *from, void *p, size_t size);

/** For each site in a module that may be unloaded: the hot functions count there again only after the cold function has
 * checked the site. */
void sites_forget_unloadable(void);

/** Returns the usable bytes of an object. */
static inline uint64_t sites_usable(void *p, size_t size)
{
    if (likely(sites_heads_have_size)) {
        uint64_t head = ((const uint64_t *)p)[-1];
        /* a chunk with a mapping of its own (bit 1) has 8 usable bytes less */
        return (head & ~(uint64_t)7) - 8 - ((head & 2) << 2);
    }
    if (!next.malloc_usable_size)
        return 0; /* unknown: a reader sees that less is usable than was requested */
    size_t usable = next.malloc_usable_size(p);
    return usable > size ? usable : size; /* tcmalloc returns 0 for objects allocated before its own start */
}

/* Stores what sites_usable() returns. False: the object has a mapping of its own; the cold function handles it. */
static inline __attribute__((always_inline)) bool sites_usable_hot(void *p, size_t size, bool heads,
                                                                   uint64_t *usable)
{
    if (!heads) {
        *usable = sites_usable(p, size);
        return true;
    }
    uint64_t head = ((const uint64_t *)p)[-1];
    *usable = (head & ~(uint64_t)7) - 8;
    return likely(!(head & 2));
}

static inline struct ledger_site_words *sites_words(char *sums, uint32_t id)
{
    return (struct ledger_site_words *)(sums + ((uint64_t)id << 6));
}

/* Each sum takes one instruction, so that a signal handler never finds it half done; only the thread itself writes to
 * it. */
static inline void sites_add3(struct ledger_site_words *w, unsigned released, uint64_t bytes, uint64_t usable)
{
    __asm__ volatile("incq (%0)\n\taddq %1, 8(%0)\n\taddq %2, 16(%0)"
                     :
                     : "r"((char *)w + 24 * released), "er"(bytes), "er"(usable)
                     : "memory", "cc");
}

static inline void sites_add2(struct ledger_site_words *w, uint64_t bytes)
{
    __asm__ volatile("incq 48(%0)\n\taddq %1, 56(%0)" : : "r"(w), "er"(bytes) : "memory", "cc");
}

/*
 * Returns true if the fast path may count at the slot. The caller has loaded the map's table and `sums` before, because
 * slot, table and sums must belong to one generation of the process. If a signal handler forks before the check, the
 * child finds the slot wiped, without an address (its state and that of the control page may both be 0). If a handler
 * forks later, the child writes to memory that nobody reads (sites_forked.c). The caller loads the slot's `id` after
 * the check, because another thread may be assigning the site, and stores `id` before `state`.
 */
static inline __attribute__((always_inline)) bool sites_is_hot(const struct sites_slot *slot, uintptr_t pc)
{
    bool hot = load_acquire(&slot->state) == load_relaxed(&process.ledger.control->state);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    return likely(hot && load_relaxed(&slot->pc) == pc);
}

/**
 * Counts an object that was just allocated. False: nothing was done, and the caller is to call the cold function.
 * `slot`: the first slot in which the address may be. `heads`: sites_heads_have_size.
 */
static inline __attribute__((always_inline)) bool
sites_allocated_hot(const struct sites_slot *slot, uintptr_t pc, void *p, size_t size, bool heads)
{
    uintptr_t a = (uintptr_t)p;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    uintptr_t table = objects_table_of(thread_self.objects, a);
    __atomic_signal_fence(__ATOMIC_SEQ_CST); /* if the thread has tables, it has sums */
    uint32_t *entry = (uint32_t *)table + (a >> 4);
    char *sums = load_relaxed(&thread_self.sums);
    uint64_t usable;
    if (unlikely(!table || size > OBJECTS_BYTES_INLINE || OBJECTS_IS_ODD(a) || load_relaxed(entry) ||
                 !sites_usable_hot(p, size, heads, &usable) || !sites_is_hot(slot, pc)))
        return false;
    uint32_t id = load_relaxed(&slot->id);
    store_relaxed(entry, id << OBJECTS_BYTES_BITS | (uint32_t)size);
    sites_add3(sites_words(sums, id), 0, size, usable);
    return true;
}

/** An object that was removed from the map, and the site that frees it. */
struct sites_held {
    char *sums;
    uint64_t usable;
    uint32_t had, id; /* the entry of the map; the id of the site */
};

/**
 * Removes an object that the call at `pc` is about to free from the map. False: nothing was done; see
 * sites_allocated_hot().
 */
static inline __attribute__((always_inline)) bool sites_take_hot(const struct sites_slot *slot, uintptr_t pc,
                                                                 void *p, bool heads, struct sites_held *held)
{
    uintptr_t a = (uintptr_t)p;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    uintptr_t table = objects_table_of(thread_self.objects, a);
    if (unlikely(!table || OBJECTS_IS_ODD(a)))
        return false;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    uint32_t *at = (uint32_t *)table + (a >> 4), entry = load_relaxed(at),
             bytes = entry & OBJECTS_BYTES_INLINE;
    *held = (struct sites_held){.sums = load_relaxed(&thread_self.sums), .had = entry};
    if (unlikely(!bytes || !sites_usable_hot(p, bytes, heads, &held->usable) || !sites_is_hot(slot, pc)))
        return false;
    held->id = load_relaxed(&slot->id);
    store_relaxed(at, 0);
    return true;
}

/** Counts the free of the object, for both sites. */
static inline __attribute__((always_inline)) void sites_freed_hot(const struct sites_held *held)
{
    uint32_t bytes = held->had & OBJECTS_BYTES_INLINE;
    sites_add3(sites_words(held->sums, held->had >> OBJECTS_BYTES_BITS), 1, bytes, held->usable);
    sites_add2(sites_words(held->sums, held->id), bytes);
}

/** Calls both functions above, before the real free(). */
static inline __attribute__((always_inline)) bool sites_released_hot(const struct sites_slot *slot,
                                                                     uintptr_t pc, void *p, bool heads)
{
    struct sites_held held;
    if (unlikely(!sites_take_hot(slot, pc, p, heads, &held)))
        return false;
    sites_freed_hot(&held);
    return true;
}

/** Returns the slot of the first return address, from `from` outwards, that lies in no wrapper. If this needs more than
 * cached data, returns a slot without an address: the caller then calls the cold function. */
const struct sites_slot *sites_pass_wrappers(const struct walk_start *from);

#endif
