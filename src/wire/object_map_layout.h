/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WIRE_OBJECT_MAP_LAYOUT_H
#define WIRE_OBJECT_MAP_LAYOUT_H

/*
 * The layout of the map of objects (target/object_map.h) and of the tree of mappings (tag/mmap_ranges.h) in the memory
 * of the target. The header of a ledger has the address of the directory and of the tree (`objects`, `ranges`), and the
 * tool reads them there. Memory that was not written yet reads as zeros.
 *
 * The map has one entry for each 16 bytes of address space. A directory leads to a table for each unit of 4 MiB. Tables
 * lie in chunks of OBJECTS_TOGETHER: first the tables of all units of the chunk, then the entries for odd multiples of
 * 8.
 *
 * Runs in: target and tool.
 */

#include <stdint.h>

#define OBJECTS_UNIT_SHIFT 22
/* The directory, by unit of user addresses: the address of its table less OBJECTS_BIAS, so that the address of an
 * object alone gives its entry; or 0. */
#define OBJECTS_TABLES  (1u << (47 - OBJECTS_UNIT_SHIFT))
#define OBJECTS_BIAS(a) (((uint64_t)(a) >> OBJECTS_UNIT_SHIFT) << (OBJECTS_UNIT_SHIFT - 2))
#define OBJECTS_ENTRIES (1u << (OBJECTS_UNIT_SHIFT - 4)) /* of a table, for multiples of 16 */
/* Words behind the entries, one for each page: of an object that is larger than an entry can tell, its bytes <<
 * OBJECTS_GRANULES | the granule of 16 in which it begins. Only one such object begins in a page. */
#define OBJECTS_PAGES    (1u << (OBJECTS_UNIT_SHIFT - 12))
#define OBJECTS_GRANULES 8
/* A table: entries, words, and a page whose first word says whether the entries for odd multiples of 8 are writable. */
#define OBJECTS_TABLE_BYTES (OBJECTS_ENTRIES * 4u + OBJECTS_PAGES * 8u + 4096u)
#define OBJECTS_TOGETHER    32u
#define OBJECTS_ODD_BYTES                                                                                    \
    (OBJECTS_TOGETHER * OBJECTS_TABLE_BYTES) /* from an entry to that of the address 8 above */
#define OBJECTS_CHUNK_BYTES (2ull * OBJECTS_ODD_BYTES)
#define OBJECTS_BYTES_BITS  12 /* of an entry; the account is above them */
#define OBJECTS_BYTES_INLINE                                                                                 \
    4095u /* the most bytes that an entry can tell; 0: the word of the page has them */
#define OBJECTS_ENTRY_AT(a) (((uint32_t)(a) & ((1u << OBJECTS_UNIT_SHIFT) - 1)) >> 4)
#define OBJECTS_IS_ODD(a)   ((a)&8)

/** The word of the directory for the address. The word before the directory is the mask of an index into it: 0 where
 * there are no tables, so that the first word is read, which is 0. */
static inline uintptr_t objects_table_of(const uintptr_t *directory, uintptr_t address)
{
    return directory[(address >> OBJECTS_UNIT_SHIFT) & directory[-1]];
}

/* A treap: a search tree by address, a heap by priority, which is random; so it is shallow whatever the order. Node
 * 0 is none. */
#define RANGES_NODES 1048576u

struct ranges_node {
    uint64_t start, end;
    uint32_t left, right;
    uint32_t priority;
    uint32_t mapping;
};

struct ranges_mapping {
    uint32_t account;
    uint32_t parts; /* 0: vacant, and `account` is the next vacant one */
};

struct ranges {
    uint32_t locked;
    uint32_t root;
    uint32_t nodes, vacant_node; /* ever used; list by `left` */
    uint32_t mappings, vacant_mapping;
    uint64_t seed;
    struct ranges_mapping mapping[RANGES_NODES];
    struct ranges_node node[RANGES_NODES];
};

#endif
