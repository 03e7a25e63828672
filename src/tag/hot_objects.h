/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TAG_HOT_OBJECTS_H
#define TAG_HOT_OBJECTS_H

/*
 * The short way to count an object of more than 4,095 bytes, whose size does not fit into its entry of the map, and a
 * realloc(). It may be used wherever inline code may count: the tag is counted, no rule requests more, and
 * allium_thread.objects leads to tables. It does not look up the rules of the tag, and adds as inline code does.
 *
 * Runs in: target, called by tagged code. Threads: any, signal handlers included; no lock. A signal handler may fork
 * between two of these calls; allium_thread.objects of the child then has no tables, which each function checks anew.
 * A false result: nothing was done, and the caller is to take the slow path.
 */

#include <stdbool.h>
#include <stddef.h>

#include "allium/tag.h"
#include "base/sigsafe/atomic.h"
#include "target/object_map.h"
#include "wire/ledger_accounts.h"

/* Most allocators map larger objects separately; those system calls cost more than the slow path. */
#define HOT_BYTES_MAX (1u << 20)

/** An object that hot_take() has removed from the map. */
struct hot_object {
    uint32_t entry; /* what the map had; 0: the object was not tracked */
    uint64_t bytes;
};

/* Finds the words of the map for an object. */
static inline bool hot_place(const void *object, struct object_place *at)
{
    uintptr_t table = allium_table_of(object);
    if (unlikely(!table || OBJECTS_IS_ODD((uintptr_t)object) || (uintptr_t)object >> OBJECTS_ADDRESS_BITS))
        return false;
    *at = object_place_of(table, (uintptr_t)object);
    return true;
}

/** Counts `bytes` bytes for the place of the tag: as allocated, or, if sign is negative, as released. */
static inline bool hot_account(const struct allium_tag *tag, size_t bytes, int sign)
{
    if (unlikely(bytes > HOT_BYTES_MAX || !allium_thread.objects[0]))
        return false;
    allium_add(allium_thread.counters + tag->counters + (sign < 0 ? sizeof(struct ledger_count) : 0), bytes);
    return true;
}

/** Adds a new object to the map, and counts it for the place of the tag. */
static inline bool hot_track(const struct allium_tag *tag, const void *object, size_t bytes)
{
    struct object_place at;
    bool large = bytes > ALLIUM_INLINE_BYTES_MAX;
    if (unlikely(bytes > HOT_BYTES_MAX || !hot_place(object, &at) || load_relaxed(at.entry) ||
                 (large && load_relaxed(at.page))))
        return false;
    if (large)
        store_relaxed(at.page, object_page_word((uintptr_t)object, bytes));
    store_release(at.entry, tag->entry | (large ? 0 : (uint32_t)bytes));
    allium_add(allium_thread.counters + tag->counters, bytes);
    return true;
}

/** Removes an object from the map; does not count it as freed. */
static inline bool hot_take(const void *object, struct hot_object *o)
{
    struct object_place at;
    if (unlikely(!hot_place(object, &at)))
        return false;
    *o = (struct hot_object){.entry = load_relaxed(at.entry)};
    o->bytes = ALLIUM_BYTES_OF(o->entry);
    if (!o->entry)
        return true;
    if (!o->bytes) {
        uint64_t page = load_relaxed(at.page);
        o->bytes = page >> OBJECTS_GRANULES;
        if (unlikely(!page || !object_page_word_is_of(page, (uintptr_t)object) || o->bytes > HOT_BYTES_MAX))
            return false;
        store_relaxed(at.page, 0);
    }
    store_release(at.entry, 0);
    return true;
}

/** Counts an object as freed that hot_take() has removed; in a fork child without tables does nothing. */
static inline void hot_count_free(struct hot_object o)
{
    if (likely(allium_thread.objects[0]))
        allium_add(allium_thread.counters + ALLIUM_COUNTERS_OF(o.entry) + sizeof(struct ledger_count),
                   o.bytes);
}

#endif
