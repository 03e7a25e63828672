/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BASE_SIGSAFE_WORD_CACHE_H
#define BASE_SIGSAFE_WORD_CACHE_H

/*
 * A cache that maps keys of 64 bits to words other than 0. A new word may replace the word of another key. The same
 * word may be in two entries.
 *
 * Runs in: target. Threads: any, signal handlers included, without a lock. An entry is two words, key ^ word and word:
 * if a reader gets the two words from different writes, they do not match its key. Zero at first.
 *
 * The cache is small at first, because the page fault at the first use of a page costs as much time as the page saves.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/sigsafe/atomic.h"

#define WORD_CACHE_WAYS       4u
#define WORD_CACHE_SETS       4096u /* at most */
#define WORD_CACHE_SETS_FIRST 256u

struct word_cache_entry {
    uint64_t check; /* key ^ word */
    uint64_t word;
};

struct word_cache {
    uint64_t grown;   /* the bits that growth has added to WORD_CACHE_MASK_FIRST */
    uint64_t evicted; /* words that were replaced since the cache last grew */
    uint64_t keeps;   /* 0: the cache is empty */
    struct word_cache_entry at[WORD_CACHE_SETS][WORD_CACHE_WAYS] __attribute__((aligned(64)));
};

#define WORD_CACHE_SET_BYTES  (WORD_CACHE_WAYS * sizeof(struct word_cache_entry))
#define WORD_CACHE_MASK_FIRST (WORD_CACHE_SETS_FIRST * WORD_CACHE_SET_BYTES - sizeof(struct word_cache_entry))
#define WORD_CACHE_MASK_LAST  (WORD_CACHE_SETS * WORD_CACHE_SET_BYTES - sizeof(struct word_cache_entry))
/* the cache grows after more replaced words than this; each replaced word must be computed again */
#define WORD_CACHE_EVICTED_MOST 32u

/** Returns the mask of the offsets of entries. */
static inline uint64_t word_cache_mask(const struct word_cache *c)
{
    return WORD_CACHE_MASK_FIRST | load_relaxed(&c->grown);
}

/* Returns the offset of the first entry to check for the key. The low bits of the key choose the way (the entry in its
 * set), the next bits the set. */
static inline uint64_t word_cache_place(uint64_t key, uint64_t mask)
{
    return (key * sizeof(struct word_cache_entry) ^ key >> 10) & mask;
}

static inline struct word_cache_entry *word_cache_entry(struct word_cache *c, uint64_t place)
{
    return (struct word_cache_entry *)((char *)c->at + place);
}

/* Returns the n-th entry to check, in the set of the entry at offset `first`. */
static inline struct word_cache_entry *word_cache_way(struct word_cache *c, uint64_t first, unsigned n)
{
    uint64_t set = first & ~(WORD_CACHE_SET_BYTES - 1);
    return word_cache_entry(c, set | ((first + n * sizeof(struct word_cache_entry)) % WORD_CACHE_SET_BYTES));
}

static inline uint64_t word_cache_word(const struct word_cache_entry *e, uint64_t key)
{
    uint64_t word = load_relaxed(&e->word);
    return likely((load_relaxed(&e->check) ^ word) == key) ? word : 0;
}

/** Returns the word of the key if the first entry to check has it; else 0. Returns 0 for a key of 0. */
static inline uint64_t word_cache_first(struct word_cache *c, uint64_t key, uint64_t mask)
{
    return word_cache_word(word_cache_entry(c, word_cache_place(key, mask)), key);
}

/** Returns the word of the key; 0: the cache has none. */
static inline uint64_t word_cache_find(struct word_cache *c, uint64_t key)
{
    uint64_t first = word_cache_place(key, word_cache_mask(c)), word = 0;
    for (unsigned n = 0; n < WORD_CACHE_WAYS && !word; n++)
        word = word_cache_word(word_cache_way(c, first, n), key);
    return word;
}

/** Stores the word of a key; may replace the word of another key. */
ONE_COPY void word_cache_keep(struct word_cache *c, uint64_t key, uint64_t word);
/** Removes all words. No other thread may use the cache at the same time. */
ONE_COPY void word_cache_forget(struct word_cache *c);

#endif
