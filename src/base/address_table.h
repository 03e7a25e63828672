/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BASE_ADDRESS_TABLE_H
#define BASE_ADDRESS_TABLE_H

/*
 * Live objects by address: open addressing, at most two thirds full. Removing moves later objects back, so that no slot
 * marks a removed one. An object is a structure of the caller's whose first member is the address; a slot whose address
 * is 0 is empty. There may be millions of them, and each event looks one up: so the size of a slot is an argument of
 * each function, and a constant at each call.
 *
 * Runs in: the tool. Threads: one at a time. Owns: the slots, until address_table_release().
 */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct address_table {
    char *slots;
    size_t n, mask;
};

#define ADDRESS_TABLE_FIRST 4096u

static inline void address_table_init(struct address_table *t, const size_t bytes)
{
    *t = (struct address_table){.slots = mem_array(ADDRESS_TABLE_FIRST, bytes),
                                .mask = ADDRESS_TABLE_FIRST - 1};
}

static inline void address_table_release(struct address_table *t)
{
    free(t->slots);
    *t = (struct address_table){.slots = NULL};
}

static inline uint64_t *address_table_slot(const struct address_table *t, const size_t bytes, size_t at)
{
    return (uint64_t *)(t->slots + at * bytes);
}

static inline size_t address_table_home(const struct address_table *t, uint64_t address)
{
    return (size_t)((address * UINT64_C(0x9E3779B97F4A7C15)) >> 20) & t->mask;
}

/** Returns the object at the address, or the empty slot where it belongs; valid until the next change. */
static inline void *address_table_find(const struct address_table *t, const size_t bytes, uint64_t address)
{
    size_t at = address_table_home(t, address);
    for (uint64_t *slot; (slot = address_table_slot(t, bytes, at)), *slot && *slot != address;)
        at = (at + 1) & t->mask;
    return address_table_slot(t, bytes, at);
}

/** Loads the slot where the object at the address would be, for address_table_find() soon after. */
static inline void address_table_prefetch(const struct address_table *t, const size_t bytes, uint64_t address)
{
    const char *slot = (const char *)address_table_slot(t, bytes, address_table_home(t, address));
    __builtin_prefetch(slot);
    __builtin_prefetch(slot + bytes - 1);
}

static inline void address_table_grow(struct address_table *t, const size_t bytes)
{
    struct address_table old = *t;
    t->mask = 2 * old.mask + 1;
    t->slots = mem_array(t->mask + 1, bytes);
    for (size_t i = 0; i <= old.mask; i++) {
        const uint64_t *slot = address_table_slot(&old, bytes, i);
        if (*slot)
            memcpy(address_table_find(t, bytes, *slot), slot, bytes);
    }
    free(old.slots);
}

/** Adds a copy of an object whose address is not there yet. */
static inline void address_table_add(struct address_table *t, const size_t bytes, const void *object)
{
    if (3 * (t->n + 1) > 2 * t->mask)
        address_table_grow(t, bytes);
    memcpy(address_table_find(t, bytes, *(const uint64_t *)object), object, bytes);
    t->n++;
}

/** Removes an object, to which `object` points as address_table_find() returned it. */
static inline void address_table_remove(struct address_table *t, const size_t bytes, void *object)
{
    size_t hole = (size_t)((char *)object - t->slots) / bytes;
    for (size_t at = hole;;) {
        at = (at + 1) & t->mask;
        const uint64_t *slot = address_table_slot(t, bytes, at);
        if (!*slot)
            break;
        const size_t home = address_table_home(t, *slot);
        if (((at - home) & t->mask) < ((at - hole) & t->mask)) /* its home is behind the hole */
            continue;
        memcpy(address_table_slot(t, bytes, hole), slot, bytes);
        hole = at;
    }
    *address_table_slot(t, bytes, hole) = 0;
    t->n--;
}

#endif
