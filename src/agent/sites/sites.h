/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_SITES_H
#define AGENT_SITES_H

/*
 * Exact accounts of call sites (ALLIUM_SITES=1). A site is a call instruction that reaches the allocator, identified by
 * its return address. The account of a site counts the objects that the site has allocated, those of these objects that
 * were freed by any site, and the objects of any site that this site has freed. The sampler works as without accounts.
 *
 * Runs in: target. Threads: any, signal handlers included; no lock.
 * Owns: a map of all live objects (target/object_map.h), a table of return addresses, the ledger's sums of sites.
 *
 * The hot functions here are inlined into the hooks of sites_hooks.c and sites_operators.c, which call the real
 * functions. An object is in the map from just after the real function has allocated it until just before the real
 * function frees it. So only the thread that allocates or frees the object writes to its entry. A thread adds to its
 * own sums by single instructions, so that a signal handler never finds a sum half done.
 *
 * In a new fork child the map and the table of return addresses are empty (MADV_WIPEONFORK). So requests of the child
 * take the cold functions, until these have made a ledger for the child: the parent's sums are not mapped in the child.
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
 * The number of sets of tables (site_tables.h). A fork child uses the set after that of its parent. After this many
 * nested forks, the set of the first process is used again. That does harm only if a signal handler has interrupted
 * code that writes to this set, and all of these forks ran before the handler returned.
 */
#define SITES_GENERATIONS 4u

#define SITES_MOST    (1u << 16)
#define SITES_WRAPPER (1u << 31) /* the site lies in a wrapper: each call looks up the wrapper's caller */
#define SITES_STAYS   (1u << 30) /* the site lies in a wrapper whose module is never unloaded */
/* a flag in results of number_at(): the stack of each call that allocates is to be recorded */
#define SITES_STACKS (1u << 29)
#define SITES_PLAIN  (SITES_STACKS - 1)

/*
 * Entries of the map and slots store a site's id, which is another form of its number: id << 6 is the distance in bytes
 * from the sums of site 0 to the sums of the site, in any shard. A block of the table LEDGER_SITE_SUMS has the sums of
 * 64 sites in all shards, so ids have a gap after each 64.
 */
#define SITES_ID(number) ledger_index_of(number, LEDGER_SITES_TOGETHER)
#define SITES_NUMBER(id) ledger_number_at(id, LEDGER_SITES_TOGETHER)

/* Not 0: the process keeps accounts of call sites. */
extern uint32_t sites_counting __attribute__((visibility("hidden")));
/* 1: the word before each object holds the size of its chunk, as in glibc. 0: it does not. */
extern uint32_t sites_heads_have_size __attribute__((visibility("hidden")));

/* The functions of struct sites for the rest of the agent; agent/sites_link.h documents them. */
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

/**
 * Counts the result `p` of a request for `size` bytes (NULL: the request failed) for the caller of the hook. The hook
 * must reach this function by a tail jump. Returns `p`.
 */
ONE_COPY void *sites_book_cold(void *p, size_t size);

/**
 * If a function of the allocator has called another function of the malloc family through its symbol, the object `p` of
 * `size` bytes was counted for a site in the allocator. Moves the object to the site of the program's call, `from`.
 */
ONE_COPY void sites_recharge_cold(const struct walk_start *from, void *p, size_t size);

/**
 * For each slot whose site lies, or may lie, in a module that can be unloaded: makes the hot functions refuse to count
 * there until the cold function has checked the slot.
 */
void sites_forget_unloadable(void);

/** Returns the usable bytes of an object for which `size` bytes were requested; 0: not known. */
static inline uint64_t sites_usable(void *p, size_t size)
{
    if (likely(sites_heads_have_size)) {
        uint64_t head = ((const uint64_t *)p)[-1];
        /* a chunk with a mapping of its own (bit 1) has 8 usable bytes less */
        return (head & ~(uint64_t)7) - 8 - ((head & 2) << 2);
    }
    if (!next.malloc_usable_size)
        return 0; /* not known: readers of the sums see that fewer bytes are usable than were requested */
    size_t usable = next.malloc_usable_size(p);
    return usable > size ? usable : size; /* tcmalloc returns 0 for objects allocated before its own start */
}

/* Stores the usable bytes of the object, as sites_usable() does. `heads`: see sites_allocated_hot(). False: the object
 * has a mapping of its own (mmap), *usable is not valid, and the caller must call the cold function. */
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

/* Counts one allocation (`released` 0) or one release (1). Each of the three words takes one instruction, so that a
 * signal handler never finds it half done. No lock prefix, because only this thread writes to these words. */
static inline void sites_add3(struct ledger_site_words *w, unsigned released, uint64_t bytes, uint64_t usable)
{
    __asm__ volatile("incq (%0)\n\taddq %1, 8(%0)\n\taddq %2, 16(%0)"
                     :
                     : "r"((char *)w + 24 * released), "er"(bytes), "er"(usable)
                     : "memory", "cc");
}

/* Counts one object that the site itself has freed. */
static inline void sites_add2(struct ledger_site_words *w, uint64_t bytes)
{
    __asm__ volatile("incq 48(%0)\n\taddq %1, 56(%0)" : : "r"(w), "er"(bytes) : "memory", "cc");
}

/*
 * Returns true if the hot functions may count at the slot. A hot function loads the map's table and `sums` before this
 * check, because slot, table and sums must belong to one generation of the process. If a signal handler forks before
 * the check, the child finds the slot wiped: its address is 0. (The slot's state alone would not tell, because it and
 * the state of the control page may both be 0.) If a handler forks later, the child writes to memory that nobody reads:
 * to tables that only the parent uses, and to private memory in place of the sums (sites_forked.c). A hot function
 * loads the slot's `id` after the check, because a thread that assigns a site to the slot stores `id` before `state`.
 */
static inline __attribute__((always_inline)) bool sites_is_hot(const struct sites_slot *slot, uintptr_t pc)
{
    bool hot = load_acquire(&slot->state) == load_relaxed(&process.ledger.control->state);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    return likely(hot && load_relaxed(&slot->pc) == pc);
}

/**
 * Counts an object that the call with the return address `pc` has just allocated. `size`: the bytes requested. `slot`:
 * any slot; if it does not belong to `pc`, the result is false. `heads`: true only if sites_heads_have_size is known to
 * be 1, which saves a test. False: nothing was done, and the caller is to call the cold function.
 */
static inline __attribute__((always_inline)) bool
sites_allocated_hot(const struct sites_slot *slot, uintptr_t pc, void *p, size_t size, bool heads)
{
    uintptr_t a = (uintptr_t)p;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    uintptr_t table = objects_table_of(thread_self.objects, a);
    __atomic_signal_fence(__ATOMIC_SEQ_CST); /* load `sums` second: a thread that has tables has sums */
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
    uint32_t had, id; /* the entry that the map had for the object; the id of the site that frees it */
};

/**
 * The call with the return address `pc` is about to free the object `p`: removes the object from the map, and fills in
 * *held. Parameters as in sites_allocated_hot(). False: the object was not removed, *held is not valid, and the caller
 * is to call the cold function.
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

/** Counts the free of the object for two sites: the one that allocated the object, and the one that frees it. */
static inline __attribute__((always_inline)) void sites_freed_hot(const struct sites_held *held)
{
    uint32_t bytes = held->had & OBJECTS_BYTES_INLINE;
    sites_add3(sites_words(held->sums, held->had >> OBJECTS_BYTES_BITS), 1, bytes, held->usable);
    sites_add2(sites_words(held->sums, held->id), bytes);
}

/** Calls sites_take_hot() and sites_freed_hot(), before the real free(). False: see sites_take_hot(). */
static inline __attribute__((always_inline)) bool sites_released_hot(const struct sites_slot *slot,
                                                                     uintptr_t pc, void *p, bool heads)
{
    struct sites_held held;
    if (unlikely(!sites_take_hot(slot, pc, p, heads, &held)))
        return false;
    sites_freed_hot(&held);
    return true;
}

/**
 * Returns the slot of the first return address, from `from` outwards, that is not known to lie in a wrapper of a
 * permanent module. If this address has no slot that sites_slot_known() finds, if the walk needs an unwind rule that is
 * not cached, or if there are too many wrappers, returns a slot whose address is 0: the caller then calls the cold
 * function.
 */
const struct sites_slot *sites_pass_wrappers(const struct walk_start *from);

#endif
