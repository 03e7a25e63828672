/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WIRE_OBJECT_MAP_LAYOUT_H
#define WIRE_OBJECT_MAP_LAYOUT_H

/*
 * The layout of the map of objects (target/object_map.h) and of the tree of mappings (tag/mmap_ranges.h) in
 * the memory of the target. The ledger's header has the addresses of both (`objects`, `tagged`, `ranges`),
 * and the tool reads both in the target's memory. Memory that was not written yet reads as zeros.
 *
 * The map has one entry for each 16 bytes of address space. A directory leads to a table for each unit of 4
 * MiB. Tables lie in chunks of OBJECTS_TOGETHER: first the tables of all units of the chunk, then the entries
 * for odd multiples of 8.
 *
 * Runs in: target and tool.
 */

#include <stdint.h>

#define OBJECTS_UNIT_SHIFT 22
/* The directory has one word for each unit of user addresses: the address of the unit's table less
 * OBJECTS_BIAS, so that the address of an object alone gives its entry. 0: there is no table. */
#define OBJECTS_TABLES  (1u << (47 - OBJECTS_UNIT_SHIFT))
#define OBJECTS_BIAS(a) (((uint64_t)(a) >> OBJECTS_UNIT_SHIFT) << (OBJECTS_UNIT_SHIFT - 2))
/* entries of a table, for addresses that are multiples of 16 */
#define OBJECTS_ENTRIES (1u << (OBJECTS_UNIT_SHIFT - 4))
/*
 * Words behind the entries of a table, one for each page. The word is used for the object that begins in the
 * page and is too large for its entry (at most one can): its size in bytes << OBJECTS_GRANULES | the 16-byte
 * granule in which it begins.
 */
#define OBJECTS_PAGES    (1u << (OBJECTS_UNIT_SHIFT - 12))
#define OBJECTS_GRANULES 8
/* A table: entries, words, and a page whose first word says whether the entries for odd multiples of 8 are
 * writable. */
#define OBJECTS_TABLE_BYTES (OBJECTS_ENTRIES * 4u + OBJECTS_PAGES * 8u + 4096u)
#define OBJECTS_TOGETHER    32u
/* The distance from an entry to the entry of the address 8 bytes above. */
#define OBJECTS_ODD_BYTES   (OBJECTS_TOGETHER * OBJECTS_TABLE_BYTES)
#define OBJECTS_CHUNK_BYTES (2ull * OBJECTS_ODD_BYTES)
#define OBJECTS_BYTES_BITS  12 /* low bits of an entry: the size of the object; the account is above them */
/* The largest size that an entry can hold. 0: the word of the page has the size. */
#define OBJECTS_BYTES_INLINE 4095u
#define OBJECTS_ENTRY_AT(a)  (((uint32_t)(a) & ((1u << OBJECTS_UNIT_SHIFT) - 1)) >> 4)
#define OBJECTS_IS_ODD(a)    ((a)&8)

/** Returns the word of the directory for the address. The word before the directory is a mask for the index. If there
 * are no tables, the mask is 0: then the first word of the directory is returned, which is 0. */
static inline uintptr_t objects_table_of(const uintptr_t *directory, uintptr_t address)
{
    return directory[(address >> OBJECTS_UNIT_SHIFT) & directory[-1]];
}

/* A treap: a search tree by address and a heap by random priority. So it is shallow, whatever the order of
 * insertions. Node 0 is not used. */
#define RANGES_NODES 1048576u

struct ranges_node {
    uint64_t start, end;
    uint32_t left, right;
    uint32_t priority;
    uint32_t mapping;
};

struct ranges_mapping {
    uint32_t account;
    uint32_t parts; /* 0: the record is unused, and `account` is the number of the next unused one */
};

struct ranges {
    uint32_t locked;
    uint32_t root;
    uint32_t nodes, vacant_node; /* nodes ever used; list of unused nodes, linked by `left` */
    uint32_t mappings, vacant_mapping;
    uint64_t seed;
    struct ranges_mapping mapping[RANGES_NODES];
    struct ranges_node node[RANGES_NODES];
};

#endif
