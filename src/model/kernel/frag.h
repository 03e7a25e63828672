/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_FRAG_H
#define MODEL_FRAG_H

/*
 * Fragmentation of the kernel's memory: what the slab allocator, the page allocator and vmalloc() hold and cannot give
 * to anybody, computed from a struct memory_state. Nothing is estimated: a figure is exact, or has bounds, or is not
 * known. Formulas: allium-sys-frag(1).
 *
 * Runs in: the tool. Threads: pure. Owns: its lists, until frag_release(); the state must outlive it.
 */

#include "model/kernel/memory_state.h"

/** A figure between two bounds, which are equal if it is exact. */
struct frag_range {
    bool known;
    uint64_t low, high;
};

/** What the slabs of a cache hold, in bytes: objects + padding + free + tails = bytes. */
enum frag_slab_part {
    FRAG_BYTES,   /* of all its slabs */
    FRAG_OBJECTS, /* objects in use, as large as the code asked for */
    FRAG_PADDING, /* between these and the next ones: alignment, pointers of the allocator, debug information */
    FRAG_FREE,    /* free objects of the slabs in the nodes' lists of partly used slabs */
    FRAG_TAILS,   /* ends of slabs that are too short for an object */
    FRAG_CPU_FREE,   /* free objects in CPUs' slabs: the kernel counts them as objects in use */
    FRAG_SHEAF_FREE, /* free objects in sheaves */
    FRAG_SHRINK,     /* what `echo 1 > /sys/kernel/slab/CACHE/shrink` would free now */
    FRAG_SLAB_PARTS
};

struct frag_cache {
    const struct memory_cache *of;
    /* Some slabs have fewer pages than the cache's order says, as there were no larger blocks: FRAG_BYTES and
     * FRAG_TAILS are upper bounds. */
    bool smaller_slabs;
    struct frag_range at[FRAG_SLAB_PARTS];
    struct frag_range lost; /* padding, free and tails */
    /* of the partly used slabs: objects in use, low, and how many there is room for, high */
    struct frag_range partial;
};

struct frag_zone {
    const struct memory_zone *of;
    uint64_t free_pages, free_blocks;
    int highest_order;                        /* of a free block; -1: there is none */
    uint64_t unusable[MEMORY_ORDERS_MAX];     /* in thousandths, see frag_unusable_index() */
    int64_t extfrag[MEMORY_ORDERS_MAX];       /* likewise */
    int type_highest_order[MEMORY_TYPES_MAX]; /* if the zone is typed; -1: none */
};

struct frag_caller {
    const char *name;
    uint64_t areas, bytes;
    struct frag_range pages_bytes; /* of areas whose pages are known */
    /* of the free addresses behind its areas up to the next one, where the addresses are known */
    struct frag_range holes_bytes;
};

struct frag_vmalloc {
    struct VEC(struct frag_caller) callers;
    uint64_t areas, bytes;
    struct frag_range pages_bytes, holes_bytes, largest_hole_bytes;
    uint64_t unpurged_bytes; /* of areas that are free already, and still take addresses */
    uint64_t holes;          /* their number */
};

/** A gap of this size ends a range of addresses: it is free space, and no hole. */
#define FRAG_HOLE_BYTES_MAX (UINT64_C(1) << 30)

/** Are all the slabs there are in the list of caches? */
struct frag_whole {
    struct frag_range slab_bytes;  /* of all caches */
    struct frag_range large_bytes; /* kmallocs of whole pages: known from a capture, those since it began */
    struct frag_range meminfo_bytes;
    int64_t rest_bytes;      /* meminfo's, less the two; 0 if one of these is not known */
    uint64_t rest_max_bytes; /* what CPUs keep back of meminfo's two counters; 0: not known */
};

struct frag {
    const struct memory_state *of;
    struct VEC(struct frag_cache) caches; /* those with most `lost` first */
    struct frag_range slab[FRAG_SLAB_PARTS], slab_lost;
    uint64_t unreclaimable_bytes; /* of the bytes of slabs, in caches whose objects no shrinker frees */
    struct VEC(struct frag_zone) zones;
    struct frag_vmalloc vmalloc;
    struct frag_whole whole;
};

/** `large`: live bytes of kmallocs of whole pages, which a capture has seen. */
void frag_compute(struct frag *f, const struct memory_state *s, const struct frag_range *large);
void frag_release(struct frag *f);

static inline struct frag_range frag_exact(uint64_t value)
{
    return (struct frag_range){true, value, value};
}

/* ---- parts ---- */

void frag_cache_compute(struct frag_cache *c, const struct memory_cache *of, const struct memory_state *s);
void frag_zone_compute(struct frag_zone *z, const struct memory_zone *of, unsigned n_types);
void frag_vmalloc_compute(struct frag_vmalloc *v, const struct memory_state *s);

/**
 * Returns the share of free memory, in thousandths, that is in blocks too small for a request of 2^order pages: 1000 if
 * nothing is free. As unusable_free_index() of the kernel's mm/vmstat.c, which debugfs shows as unusable_index.
 */
uint64_t frag_unusable_index(const uint64_t blocks[], unsigned orders, unsigned order);
/**
 * Returns why a request of 2^order pages would fail, in thousandths: towards 0 for want of memory, towards 1000 for
 * fragmentation; -1000: it would not fail; 0: nothing is free. As __fragmentation_index() of mm/vmstat.c, extfrag_index
 * in debugfs, from which kswapd and compaction decide (vm.extfrag_threshold).
 */
int64_t frag_extfrag_index(const uint64_t blocks[], unsigned orders, unsigned order);

#endif
