/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TARGET_INTERN_TABLE_H
#define TARGET_INTERN_TABLE_H

/*
 * A hash table that finds records of the ledger by content: it maps a hash to record numbers, and a callback compares
 * the content. Frames, stacks, cells and strings of tags, for example, have such a table. Entries are never removed.
 *
 * If the newest table is half full, or all INTERN_PROBES slots for an entry are taken, a table of twice the size is
 * added. An entry that is found in an older table is copied to the newest one. If two threads add a record at the same
 * time, the ledger may have two records with the same content; readers of the ledger add up their values.
 *
 * Runs in: target. Threads: any, signal handlers included; no lock.
 * Owns: private anonymous memory (ledger_private()), until the image ends.
 *
 * The target has other hash tables for other requirements: agent/sampler/live_table.h removes an entry for each sample
 * that is freed, and gives memory back; agent/sites/site_slots.h is read at each call, without a callback and within
 * one cache line; tag/tag_index.h and tag/callsite_tags.h stay valid in a fork child, although the child does not
 * inherit the ledger; base/sigsafe/word_cache.h may forget any entry.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/sigsafe/atomic.h"
#include "wire/ledger_make.h"

#define INTERN_NONE   UINT32_MAX
#define INTERN_TABLES 24u
#define INTERN_PROBES 64u

struct intern_table {
    uint64_t *slots; /* hash << 32 | number + 1; 0: empty */
    uint64_t mask;
    uint64_t used;
};

struct intern {
    struct ledger *ledger; /* has the records; ledger_private() of this ledger makes the tables */
    struct intern_table tables[INTERN_TABLES];
    uint32_t count; /* tables in use; 0: none yet */
};

/** Returns whether the record with this number has the content `key`. */
typedef bool (*intern_same_fn)(const void *key, uint32_t number);

/** Adds a record number under a hash. False: there is no room, and intern_find() will not find the number. */
bool intern_add(struct intern *in, uint32_t hash, uint32_t number);
/** The bytes of memory that intern_take_room() takes at most. `slots`: a power of two, 512 or more. */
#define INTERN_ROOM_BYTES(slots) ((slots)*2u * 8u)
/** Makes a table of at least `slots` slots now, and all smaller ones: later, seccomp may forbid it. */
void intern_take_room(struct intern *in, uint64_t slots);
/** In a fork child: forgets all entries, because the child's ledger has other record numbers. */
void intern_reset(struct intern *in);

static inline uint32_t intern_find_in(const struct intern_table *t, uint32_t hash, intern_same_fn same,
                                      const void *key)
{
    for (uint64_t i = hash & t->mask, n = 0; n < INTERN_PROBES; i = (i + 1) & t->mask, n++) {
        uint64_t slot = load_acquire(&t->slots[i]);
        if (!slot)
            return INTERN_NONE;
        if (slot >> 32 == hash && same(key, (uint32_t)slot - 1))
            return (uint32_t)slot - 1;
    }
    return INTERN_NONE;
}

static inline __attribute__((always_inline)) uint32_t intern_find(struct intern *in, uint32_t hash,
                                                                  intern_same_fn same, const void *key)
{
    uint32_t count = load_acquire(&in->count);
    for (uint32_t i = count; i-- > 0;) {
        uint32_t number = intern_find_in(&in->tables[i], hash, same, key);
        if (number != INTERN_NONE) {
            if (unlikely(i + 1 != count))
                intern_add(in, hash, number);
            return number;
        }
    }
    return INTERN_NONE;
}

#endif
