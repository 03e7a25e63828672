/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/sigsafe/word_cache.h"

#include <stddef.h>

/* Counts a replaced word; after too many, makes the cache larger. A word whose offset changes thereby is lost. */
static void grow(struct word_cache *c, uint64_t mask)
{
    uint64_t evicted = load_relaxed(&c->evicted) + 1;
    if (mask != WORD_CACHE_MASK_LAST && evicted > WORD_CACHE_EVICTED_MOST) {
        uint64_t wider = (mask << 2 | mask) & WORD_CACHE_MASK_LAST;
        __atomic_fetch_or(&c->grown, wider, __ATOMIC_RELAXED); /* the cache never shrinks */
        evicted = 0;
    }
    store_relaxed(&c->evicted, evicted);
}

void word_cache_keep(struct word_cache *c, uint64_t key, uint64_t word)
{
    uint64_t mask = word_cache_mask(c), first = word_cache_place(key, mask);
    struct word_cache_entry *to = NULL;
    for (unsigned n = 0; n < WORD_CACHE_WAYS && !to; n++) {
        struct word_cache_entry *e = word_cache_way(c, first, n);
        uint64_t old = load_relaxed(&e->word);
        if (!old || (load_relaxed(&e->check) ^ old) == key)
            to = e;
    }
    if (!to) {
        to = word_cache_way(c, first, 0);
        grow(c, mask);
    }
    store_relaxed(&c->keeps, 1);
    store_relaxed(&to->word, word);
    store_relaxed(&to->check, key ^ word);
}

void word_cache_forget(struct word_cache *c)
{
    if (!load_relaxed(&c->keeps)) /* a page that is read for the first time costs a page fault */
        return;
    store_relaxed(&c->keeps, 0);
    uint64_t end = word_cache_mask(c) + sizeof(struct word_cache_entry);
    for (uint64_t place = 0; place < end; place += sizeof(struct word_cache_entry)) {
        struct word_cache_entry *e = word_cache_entry(c, place);
        if (!load_relaxed(&e->word) && !load_relaxed(&e->check))
            continue; /* does not write, so that a page that was never written stays unallocated */
        store_relaxed(&e->word, 0);
        store_relaxed(&e->check, 0);
    }
}
