/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_SITES_H
#define AGENT_SITES_H

/*
 * Exact accounts of call sites (ALLIUM_SITES=1): what each call instruction that reaches the allocator, known by its
 * return address, has made, what of that is gone, and what it has freed. Samples are drawn beside as ever.
 *
 * Runs in: target. Threads: any, signal handlers included; no lock.
 * Owns: a map of all live objects (target/object_map.h), a table of return addresses, the ledger's sums of sites.
 *
 * The hot halves here stand between those of hooks.c and the real functions. An object is in the map from right after
 * the real call that made it until right before the one that frees it: its entry belongs to whoever does the one or the
 * other. Sums are the thread's own words, added to by single instructions: a handler never finds them half done. A fork
 * child finds the map and the table of addresses empty (MADV_WIPEONFORK), which sends each request to the cold half:
 * that knows that the sums of the parent are not mapped any more.
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

#define SITES_GENERATIONS 4u /* of handlers that fork upon each other */

#define SITES_MOST    (1u << 16)
#define SITES_WRAPPER (1u << 31) /* it lies in a wrapper, and its callers are looked at each time */
#define SITES_STAYS   (1u << 30) /* and is never unloaded */
#define SITES_ASKED   (1u << 29) /* beside a number: its stacks are asked for */
#define SITES_PLAIN   (SITES_ASKED - 1)

/*
 * A site's number as entries of the map and slots have it: shifted by 6 it is where its words lie in a shard, whose
 * sites lie 64 to a block of all shards.
 */
#define SITES_ID(number) ledger_index_of(number, LEDGER_SITES_TOGETHER)
#define SITES_NUMBER(id) ledger_number_at(id, LEDGER_SITES_TOGETHER)

extern uint32_t sites_heads_tell
    __attribute__((visibility("hidden"))); /* usable bytes stand before each object, as glibc has it */

/** As sites_made_cold(), for the caller of the function that jumps to this one; returns the object. */
ONE_COPY void *sites_book_cold(void *p, size_t size);

/**
 * A function of the allocator that called another one of the family through its symbol has made it, for the call that
 * `from` comes from: what was booked for the allocator's own call is the caller's.
 */
ONE_COPY void sites_recharge_cold(const struct walk_start *from, void *p, size_t size);

/** The hot half counts at no site of a module that may be unloaded, until that site was looked at again. */
void sites_forget_unloadable(void);

/** Usable bytes of an object. */
static inline uint64_t sites_usable(void *p, size_t size)
{
    if (likely(sites_heads_tell)) {
        uint64_t head = ((const uint64_t *)p)[-1];
        return (head & ~(uint64_t)7) - 8 - ((head & 2) << 2); /* of a mapping of its own, 8 less */
    }
    if (!next.malloc_usable_size)
        return 0; /* unknown: a reader sees that less is usable than was requested */
    size_t usable = next.malloc_usable_size(p);
    return usable > size ? usable : size; /* tcmalloc says 0 of what is made before it has begun */
}

/* As sites_usable(). False: it is in a mapping of its own. */
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

/* One instruction each: a signal handler never finds it half done. Nobody else writes to the thread's own words. */
static inline void sites_add3(struct ledger_site_words *w, unsigned gone, uint64_t bytes, uint64_t usable)
{
    __asm__ volatile("incq (%0)\n\taddq %1, 8(%0)\n\taddq %2, 16(%0)"
                     :
                     : "r"((char *)w + 24 * gone), "er"(bytes), "er"(usable)
                     : "memory", "cc");
}

static inline void sites_add2(struct ledger_site_words *w, uint64_t bytes)
{
    __asm__ volatile("incq 48(%0)\n\taddq %1, 56(%0)" : : "r"(w), "er"(bytes) : "memory", "cc");
}

/*
 * May the fast path count at the slot? Asked after `table` and `sums` were loaded: slot, table and sums must belong to
 * one generation of the process. If a handler forked before, the slot was wiped in the child and belongs to no address
 * (its state and the control page's may both be 0); if a handler forks later, the child writes to memory that nobody
 * reads (sites_forked.c). The slot's `id` is loaded after this: another thread may just give the slot its site, and it
 * stores `id` before `state`.
 */
static inline __attribute__((always_inline)) bool sites_is_hot(const struct sites_slot *slot, uintptr_t pc)
{
    bool hot = load_acquire(&slot->state) == load_relaxed(&process.ledger.control->state);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    return likely(hot && load_relaxed(&slot->pc) == pc);
}

/**
 * What was just made. False: nothing is done, the cold half is to do it. `slot`: perhaps the address's. `heads`: usable
 * bytes stand before objects.
 */
static inline __attribute__((always_inline)) bool sites_made_hot(const struct sites_slot *slot, uintptr_t pc,
                                                                 void *p, size_t size, bool heads)
{
    uintptr_t a = (uintptr_t)p;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    uintptr_t table = objects_table_of(thread_self.objects, a);
    __atomic_signal_fence(__ATOMIC_SEQ_CST); /* a thread that has tables has sums */
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

/** What was taken out of the map, and by whom. */
struct sites_held {
    char *sums;
    uint64_t usable;
    uint32_t had, id;
};

/** Takes what is about to be freed by that call out of the map. False: as above. */
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

/** It was freed. */
static inline __attribute__((always_inline)) void sites_freed_hot(const struct sites_held *held)
{
    uint32_t bytes = held->had & OBJECTS_BYTES_INLINE;
    sites_add3(sites_words(held->sums, held->had >> OBJECTS_BYTES_BITS), 1, bytes, held->usable);
    sites_add2(sites_words(held->sums, held->id), bytes);
}

/** Both. */
static inline __attribute__((always_inline)) bool sites_gone_hot(const struct sites_slot *slot, uintptr_t pc,
                                                                 void *p, bool heads)
{
    struct sites_held held;
    if (unlikely(!sites_take_hot(slot, pc, p, heads, &held)))
        return false;
    sites_freed_hot(&held);
    return true;
}

/** Of the first return address from there that is in no wrapper; one that is nobody's: the cold half is to find out. */
const struct sites_slot *sites_pass_wrappers(const struct walk_start *from);

#endif
