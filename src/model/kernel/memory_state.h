/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_MEMORY_STATE_H
#define MODEL_MEMORY_STATE_H

/*
 * The kernel's own memory at one moment, as its files tell of it: slab caches, free blocks of the zones, areas of
 * vmalloc(), and a few figures of the whole machine. Parsers (collect/kernel/state/) fill it; fragmentation and advice
 * are computed from it. Each value may be missing: a kernel lacks it, or its file could not be read.
 *
 * Runs in: the tool. Threads: one at a time. Owns: its lists and their texts, until memory_state_release().
 * Invariant: whatever text it came from, values are at most MEMORY_VALUE_MAX, orders less than MEMORY_ORDERS_MAX, and
 * no product of page counts with 1000 needs more than 64 bits.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

#define MEMORY_VALUE_MAX  (UINT64_C(1) << 48) /* larger numbers are no size of a memory */
#define MEMORY_ORDERS_MAX 24u
#define MEMORY_TYPES_MAX  8u /* migrate types */
#define MEMORY_ZONES_MAX  4096u
#define MEMORY_NAME_BYTES 24u

/** Values of a slab cache; the words in brackets are the attributes of /sys/kernel/slab. */
enum memory_cache_value {
    CACHE_OBJECT_BYTES,      /* what the code asks for [object_size] */
    CACHE_STRIDE_BYTES,      /* from one object to the next, with padding and debug information [slab_size] */
    CACHE_PER_SLAB,          /* objects that fit into a slab; at least 1 [objs_per_slab] */
    CACHE_ORDER,             /* a slab has 2^order pages [order] */
    CACHE_SLABS,             /* [slabs] */
    CACHE_ROOM,              /* objects that these slabs have room for [total_objects] */
    CACHE_USED,              /* these without the free ones of partial slabs [objects] */
    CACHE_PARTIAL,           /* slabs on the nodes' lists of partly used slabs [partial] */
    CACHE_PARTIAL_USED,      /* objects in use in them [objects_partial] */
    CACHE_CPU_SLABS,         /* slabs that CPUs work on or have in their lists [cpu_slabs] */
    CACHE_CPU_PARTIAL_SLABS, /* of these in the CPUs' lists [slabs_cpu_partial: "136(13)" are 13 slabs] */
    CACHE_CPU_PARTIAL_LIMIT, /* free objects that a CPU may keep in its list [cpu_partial] */
    CACHE_MIN_PARTIAL,       /* empty slabs that a node keeps [min_partial] */
    CACHE_SHEAF,       /* objects in a CPU's sheaf, which count as used; 0: no sheaves [sheaf_capacity] */
    CACHE_ALIGN,       /* [align] */
    CACHE_HW_ALIGN,    /* 1: to cache lines [hwcache_align] */
    CACHE_RECLAIMABLE, /* 1: shrinkers free its objects [reclaim_account] */
    CACHE_BY_RCU,      /* 1: slabs are freed after a grace period [destroy_by_rcu] */
    CACHE_VALUES
};

struct memory_cache {
    char *name;    /* as in slabinfo and in events */
    char *aliases; /* names of caches merged into it, separated by blanks; NULL: none */
    uint32_t known;
    uint64_t at[CACHE_VALUES];
};

/** Values of a zone in /proc/zoneinfo, in pages. */
enum memory_zone_value {
    ZONE_FREE,
    ZONE_MIN,
    ZONE_LOW,
    ZONE_HIGH,
    ZONE_PRESENT,
    ZONE_MANAGED,
    ZONE_CPU_LISTS, /* free pages in the CPUs' lists, which ZONE_FREE does not count */
    ZONE_VALUES
};

struct memory_zone {
    unsigned node;
    char name[MEMORY_NAME_BYTES];
    unsigned orders;                    /* of `blocks`; 0: not in buddyinfo */
    uint64_t blocks[MEMORY_ORDERS_MAX]; /* free blocks of 2^order pages */
    bool typed;                         /* in pagetypeinfo: the following are known */
    uint64_t type_blocks[MEMORY_TYPES_MAX]
                        [MEMORY_ORDERS_MAX]; /* free blocks by migrate type; see type_capped */
    uint64_t page_blocks[MEMORY_TYPES_MAX];  /* page blocks of each migrate type */
    /* page blocks with pages of another type than their own: only kernels with page_owner=on count them */
    bool mixed_known;
    uint64_t mixed_blocks[MEMORY_TYPES_MAX];
    bool type_capped; /* the kernel stopped counting one of `type_blocks`: it has at least that many */
    uint32_t known;   /* bits of the values */
    uint64_t at[ZONE_VALUES];
};

/** An area of vmalloc() and its relatives. */
struct memory_area {
    bool placed;         /* begin and end are known: the kernel does not hide addresses */
    uint64_t begin, end; /* from the lowest area on */
    uint64_t bytes;      /* of addresses, with the guard page */
    bool paged;          /* `pages` is known: the area has pages of its own */
    uint64_t pages;
    bool unpurged; /* already freed, its addresses are not yet */
    char *caller;  /* "kernel_clone+0x94/0x3e0", or what the kernel says instead: "unpurged vm_area" */
    char kind[MEMORY_NAME_BYTES]; /* "vmalloc", "ioremap", "vmap" ...; "" */
};

/** Figures of the machine: meminfo's in bytes, vmstat's counts since boot. */
enum memory_figure {
    MEMORY_TOTAL,
    MEMORY_FREE,
    MEMORY_SLAB,
    MEMORY_SLAB_RECLAIMABLE,
    MEMORY_SLAB_UNRECLAIMABLE,
    MEMORY_VMALLOC_USED,
    MEMORY_COMPACT_STALLS,          /* direct compactions: an allocation waited for it */
    MEMORY_COMPACT_FAILED,          /* of these without the block that was wanted */
    MEMORY_COMPACT_DONE,            /* of these with it */
    MEMORY_COMPACT_MIGRATE_SCANNED, /* pages looked at to be moved */
    MEMORY_COMPACT_FREE_SCANNED,    /* pages looked at to move others to */
    MEMORY_COMPACT_ISOLATED,        /* pages taken to be moved */
    MEMORY_COMPACT_DAEMON_WAKES,    /* of kcompactd */
    MEMORY_HUGE_FAULTS,             /* huge pages given to programs */
    MEMORY_HUGE_FAILED,             /* ... that were not to be had */
    MEMORY_ALLOCATION_STALLS,       /* allocations that had to reclaim memory themselves */
    MEMORY_POOL_FREE,               /* huge pages of the pool that nobody uses, of which ... */
    MEMORY_POOL_PROMISED,           /* ... so many are promised */
    MEMORY_POOL_PAGE_BYTES,         /* of one of them */
    MEMORY_CMA_TOTAL,
    MEMORY_FIGURES
};

struct memory_state {
    uint64_t page_bytes;
    unsigned cpus;  /* online; 0: not known */
    unsigned nodes; /* with memory; 0: not known */
    /* what all CPUs together may keep back of one of vmstat's counters of a node; 0: not known */
    uint64_t counter_slack_pages;
    struct VEC(struct memory_cache) caches;
    bool slab_attributes;    /* /sys/kernel/slab was there; else the caches have what slabinfo tells */
    uint64_t slabinfo_pages; /* of all slabs, by slabinfo alone; 0: not known */
    struct VEC(struct memory_zone) zones;
    unsigned block_order; /* a page block has 2^block_order pages; 0: not known */
    unsigned n_types;
    char types[MEMORY_TYPES_MAX][MEMORY_NAME_BYTES]; /* of migration: "Unmovable", "Movable" ... */
    bool areas_known;                                /* vmallocinfo was there */
    struct VEC(struct memory_area) areas;
    uint32_t known; /* bits of `figures` */
    uint64_t figures[MEMORY_FIGURES];
    size_t bad_lines; /* that no parser understood, though they should have */
};

void memory_state_release(struct memory_state *s);

/** Finds a cache by its name in slabinfo; NULL: there is none. */
struct memory_cache *memory_state_cache(const struct memory_state *s, const char *name);
/** Returns the zone, which is added if it is new; NULL: there are too many. Valid until the next call. */
struct memory_zone *memory_state_zone(struct memory_state *s, unsigned node, const char *name);

static inline bool memory_cache_has(const struct memory_cache *c, enum memory_cache_value v)
{
    return c->known >> v & 1;
}
static inline bool memory_zone_has(const struct memory_zone *z, enum memory_zone_value v)
{
    return z->known >> v & 1;
}
static inline bool memory_state_has(const struct memory_state *s, enum memory_figure f)
{
    return s->known >> f & 1;
}

/** Sets a value; values over MEMORY_VALUE_MAX stay unknown. */
void memory_cache_set(struct memory_cache *c, enum memory_cache_value v, uint64_t value);
void memory_zone_set(struct memory_zone *z, enum memory_zone_value v, uint64_t value);
void memory_state_set(struct memory_state *s, enum memory_figure f, uint64_t value);

#endif
