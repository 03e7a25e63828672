/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TARGET_INTERN_TABLE_H
#define TARGET_INTERN_TABLE_H

/*
 * An index from a hash to numbers of records elsewhere; entries are only ever added. Frames, stacks and cells of the
 * ledger are found through one each.
 *
 * Runs in: target. Threads: any, signal handlers included; no lock.
 * Owns: private anonymous memory, never given back.
 *
 * Tables double; an entry found in an older table is copied to the newest. Two threads that add the same thing at once
 * may leave two records with one content in different tables: readers add them up.
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
    struct ledger *ledger; /* whose room it takes */
    struct intern_table tables[INTERN_TABLES];
    uint32_t count; /* tables in use; 0: none yet */
};

/** Is the record with this number the one that is looked for? */
typedef bool (*intern_same_fn)(const void *key, uint32_t number);

/** Adds a number under a hash; false when there is no memory (then it is simply not found again). */
bool intern_add(struct intern *in, uint32_t hash, uint32_t number);
/** What intern_take_room() takes at most: the tables up to the one of `slots`, a power of two. */
#define INTERN_ROOM_BYTES(slots) ((slots)*2u * 8u)
/** Makes it `slots` wide at least, for when there will be no more memory. */
void intern_take_room(struct intern *in, uint64_t slots);
/** Forgets everything (in a fork child, whose numbers are others). */
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
