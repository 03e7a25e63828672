/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UNWIND_RULE_CACHE_H
#define UNWIND_RULE_CACHE_H

/*
 * The cache of rules (struct walk_cache): where an entry lies, and how it gets there.
 *
 * Runs in: target. Threads: any, signal handlers included; entries are written without a lock, and halves of two do not
 * add up to an entry.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/sigsafe/atomic.h"
#include "unwind/rule.h"
#include "unwind/walk.h"

#define SET_BYTES    (WALK_WAYS * sizeof(struct walk_cache_entry))
#define MASK_FIRST   (WALK_SETS_FIRST * SET_BYTES - sizeof(struct walk_cache_entry))
#define MASK_LAST    (WALK_SETS * SET_BYTES - sizeof(struct walk_cache_entry))
#define EVICTED_MOST 32u /* before it grows; each costs a rule compiled again */

/* Which bits of an entry's place are in use. */
static inline uint64_t rule_mask(const struct walk_cache *cache)
{
    return MASK_FIRST | load_relaxed(&cache->grown);
}

/* Offset of the entry that is looked at first: the low bits of the pc choose the way, the next ones the set. */
static inline uint64_t rule_place(uint64_t key, uint64_t mask)
{
    return (key * sizeof(struct walk_cache_entry) ^ key >> 10) & mask;
}

static inline struct walk_cache_entry *rule_entry(struct walk_cache *cache, uint64_t place)
{
    return (struct walk_cache_entry *)((char *)cache->at + place);
}

/* What lies at another place now is not found again, and compiled once more when it is needed. */
static inline void rule_cache_grow(struct walk_cache *cache, uint64_t mask)
{
    uint64_t evicted = load_relaxed(&cache->evicted) + 1;
    if (mask != MASK_LAST && evicted > EVICTED_MOST) {
        __atomic_fetch_or(&cache->grown, (mask << 2 | mask) & MASK_LAST, __ATOMIC_RELAXED); /* never less */
        evicted = 0;
    }
    store_relaxed(&cache->evicted, evicted);
}

static inline void keep_rule(struct walk_cache *cache, uint64_t key, uint64_t rule)
{
    uint64_t mask = rule_mask(cache), first = rule_place(key, mask), set = first & ~(SET_BYTES - 1);
    struct walk_cache_entry *to = NULL;
    for (unsigned n = 0; n < WALK_WAYS && !to; n++) {
        struct walk_cache_entry *e =
            rule_entry(cache, set + (first + n * sizeof(struct walk_cache_entry)) % SET_BYTES);
        uint64_t old = load_relaxed(&e->rule);
        if (old == RULE_NONE || (load_relaxed(&e->check) ^ old) == key)
            to = e;
    }
    if (!to) {
        to = rule_entry(cache, first);
        rule_cache_grow(cache, mask);
    }
    store_relaxed(&to->rule, rule);
    store_relaxed(&to->check, key ^ rule);
}

#endif
