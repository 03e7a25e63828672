/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WIRE_OBJECT_MAP_LAYOUT_H
#define WIRE_OBJECT_MAP_LAYOUT_H

/*
 * The layout of the map of objects (target/object_map.h) and of the tree of mappings (tag/mmap_ranges.h) in the memory
 * of the target. The agent has a map for sites, the tag library has one for tags. The ledger's header has the addresses
 * of their directories (`objects`, `tagged`) and of the tree (`ranges`), and the tool reads all of them in the target's
 * memory. Memory that was not written yet reads as zeros.
 *
 * A map has an entry for each address that is a multiple of 16, and another one for each odd multiple of 8: the entry
 * describes the object that begins at this address. A directory leads to the table of each unit of 4 MiB of addresses.
 * OBJECTS_TOGETHER tables lie in a chunk, followed by the entries for the odd multiples of 8 of the same units.
 *
 * Runs in: target and tool.
 */

#include <stdbool.h>
#include <stdint.h>

#define OBJECTS_UNIT_SHIFT 22
/* The directory has one word for each unit of user addresses: the address of the unit's table less OBJECTS_BIAS. So the
 * entry of an object at address a is at the word + a / 16 * 4. A word 0: the unit has no table. */
#define OBJECTS_ADDRESS_BITS 47
#define OBJECTS_TABLES       (1u << (OBJECTS_ADDRESS_BITS - OBJECTS_UNIT_SHIFT))
#define OBJECTS_BIAS(a)      (((uint64_t)(a) >> OBJECTS_UNIT_SHIFT) << (OBJECTS_UNIT_SHIFT - 2))
/* entries of a table, for addresses that are multiples of 16 */
#define OBJECTS_ENTRIES (1u << (OBJECTS_UNIT_SHIFT - 4))
/*
 * Words of 8 bytes behind the entries of a table, one for each page of addresses. If an object that begins in the page
 * is too large for its entry (there is at most one such object), the word is its size in bytes << OBJECTS_GRANULES |
 * the number of the 16 bytes of the page in which it begins.
 */
#define OBJECTS_PAGES    (1u << (OBJECTS_UNIT_SHIFT - 12))
#define OBJECTS_GRANULES 8
/* The size of a table: its entries, its words, and a page whose first 4 bytes are not 0 if the entries for odd
 * multiples of 8 are writable. */
#define OBJECTS_TABLE_BYTES (OBJECTS_ENTRIES * 4u + OBJECTS_PAGES * 8u + 4096u)
#define OBJECTS_TOGETHER    32u
/* The distance in bytes from the entry of a multiple of 16 to the entry of the address 8 bytes above. */
#define OBJECTS_ODD_BYTES   (OBJECTS_TOGETHER * OBJECTS_TABLE_BYTES)
#define OBJECTS_CHUNK_BYTES (2ull * OBJECTS_ODD_BYTES)
#define OBJECTS_BYTES_BITS  12 /* low bits of an entry: the size of the object; the account is above them */
/* The largest size that an entry can hold. If an entry has an account and the size 0, see the word of the page. */
#define OBJECTS_BYTES_INLINE 4095u
#define OBJECTS_ENTRY_AT(a)  (((uint32_t)(a) & ((1u << OBJECTS_UNIT_SHIFT) - 1)) >> 4)
#define OBJECTS_IS_ODD(a)    ((a)&8)

/** The words of the map for an address. */
struct object_place {
    uint32_t *entry;
    uint64_t *page; /* of the large object that begins in this page: see object_page_word(); 0: none */
};

/** Finds the words for an address that is not an odd multiple of 8. `table`: the directory's word for it, not 0. */
static inline struct object_place object_place_of(uintptr_t table, uintptr_t address)
{
    uint32_t *first = (uint32_t *)(table + OBJECTS_BIAS(address));
    return (struct object_place){
        .entry = first + OBJECTS_ENTRY_AT(address),
        .page = (uint64_t *)(first + OBJECTS_ENTRIES) + (address >> 12 & (OBJECTS_PAGES - 1)),
    };
}

/** Returns the word of a page for a large object that begins there. */
static inline uint64_t object_page_word(uintptr_t address, uint64_t bytes)
{
    return bytes << OBJECTS_GRANULES | (address >> 4 & ((1u << OBJECTS_GRANULES) - 1));
}

/** Returns whether the word of a page, not 0, is that of the large object at this address. */
static inline bool object_page_word_is_of(uint64_t word, uintptr_t address)
{
    return word == object_page_word(address, word >> OBJECTS_GRANULES);
}

/*
 * How a thread of the agent refers to the directory: by the address of the directory, a multiple of 64, plus
 * OBJECTS_SHIFT. So the low six bits are a shift: (address << OBJECTS_HIGH_BITS) >> shift is the index. Without tables
 * they are OBJECTS_SHIFT_NONE: then each index is 0 or 1, and both words are 0. A mask in memory, as the inline code of
 * the tag library has it (the word before the directory), would take one more load, on which the address of the entry
 * depends.
 */
#define OBJECTS_HIGH_BITS  17
#define OBJECTS_SHIFT      (OBJECTS_UNIT_SHIFT + OBJECTS_HIGH_BITS)
#define OBJECTS_SHIFT_NONE 63
#define OBJECTS_SHIFT_MASK 63

/** Returns the directory's word for the address. */
static inline uintptr_t objects_table_of(const char *view, uintptr_t address)
{
    typedef uintptr_t __attribute__((aligned(1), may_alias)) word; /* without tables it has no alignment */
    uintptr_t index = address << OBJECTS_HIGH_BITS >> ((uintptr_t)view & OBJECTS_SHIFT_MASK);
    return *(const word *)(view - OBJECTS_SHIFT + index * sizeof(uintptr_t));
}

/* The tree of mappings is a treap: a search tree by address and a heap by random priority. So the tree is shallow,
 * whatever the order of insertions. A node is a range of addresses. Node 0 is not used; a link 0 leads nowhere. */
#define RANGES_NODES 1048576u

struct ranges_node {
    uint64_t start, end; /* `end` is the first address behind the range */
    uint32_t left, right;
    uint32_t priority;
    uint32_t mapping; /* index of the mapping that the range is a part of */
};

struct ranges_mapping {
    uint32_t account;
    uint32_t parts; /* number of ranges; 0: unused record, `account` is the index of the next one */
};

struct ranges {
    uint32_t locked;
    uint32_t root;
    uint32_t nodes, vacant_node; /* number of nodes ever used; first unused node: `left` links to the next */
    uint32_t mappings, vacant_mapping;
    uint64_t seed;
    struct ranges_mapping mapping[RANGES_NODES];
    struct ranges_node node[RANGES_NODES];
};

#endif
