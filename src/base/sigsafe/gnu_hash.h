/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BASE_SIGSAFE_GNU_HASH_H
#define BASE_SIGSAFE_GNU_HASH_H

/*
 * The hash of a name in DT_GNU_HASH, and the test of the Bloom filter at the start of that table. Most modules lack
 * most names: then one read of the filter usually replaces the reads of a lookup.
 *
 * Source: glibc, elf/dl-lookup.c.
 *
 * Runs in: tool and target.
 */

#include <stdbool.h>
#include <stdint.h>

static inline uint32_t gnu_hash(const char *name)
{
    uint32_t hash = 5381;
    for (; *name; name++)
        hash = hash * 33 + (uint8_t)*name;
    return hash;
}

/**
 * Returns false if no name with this hash is in the table; true: there may be one. `word` is the word of the filter at
 * index `hash / 64` modulo the number of words, `shift` the fourth number in the header of the table.
 */
static inline bool gnu_hash_may_have(uint64_t word, uint32_t hash, uint32_t shift)
{
    return word >> hash % 64 & word >> (hash >> shift % 32) % 64 & 1;
}

#endif
