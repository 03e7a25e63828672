/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WIRE_OBJECT_MAP_LAYOUT_H
#define WIRE_OBJECT_MAP_LAYOUT_H

/*
 * The layout of the map of objects (target/object_map.h), and of the tree of mappings (tag/mmap_ranges.h), in the target's own memory: the
 * header of a ledger says where the table of tables and the tree lie (`objects`, `ranges`). The tool reads them there.
 *
 * Runs in: target and tool.
 */

#include <stdint.h>

#define OBJECTS_GIB_SHIFT 30
/* By GiB of user addresses: the address of its table less OBJECTS_BIAS, so that an entry is found by the address alone; or 0 */
#define OBJECTS_TABLES  (1u << 17)
#define OBJECTS_BIAS(a) (((uint64_t)(a) >> OBJECTS_GIB_SHIFT) << (OBJECTS_GIB_SHIFT - 2))
#define OBJECTS_HALF                                                                                         \
    (1u << 26) /* entries of multiples of 16 in a table; as many of odd multiples of 8 follow */
#define OBJECTS_PAGES                                                                                        \
    (1u                                                                                                      \
     << 18) /* words behind them, by page: bytes << OBJECTS_GRANULES | which granule of 16 of the page, of what is larger */
#define OBJECTS_GRANULES     8
#define OBJECTS_BYTES_BITS   12    /* of an entry; the account is above them */
#define OBJECTS_BYTES_INLINE 4095u /* and at least one; else an entry has none: the page's word has them */
#define OBJECTS_ENTRY_AT(a)  (((uint32_t)(a) & ((1u << OBJECTS_GIB_SHIFT) - 1)) >> 4)
#define OBJECTS_IS_ODD(a)    ((a)&8)

/* A treap: a search tree by address, a heap by priority, which is random; so it is shallow whatever the order. Node 0 is none. */
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
