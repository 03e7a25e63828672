/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_SLABRATETOP_H
#define BPF_SLABRATETOP_H

/*
 * Rows of `allium sys slabratetop`: one for each slab cache, by its address and the address of its name (see
 * slab.h). 0 stands for objects too large for a cache.
 */

#include "bpf/sys.h"

struct slabratetop_key {
    __u64 cache, named_at;
};

struct slabratetop_value {
    __u64 allocations, frees;
    __u64 allocated_bytes, freed_bytes; /* freed_bytes is not known for cache 0 */
    __u64 reused;                       /* of the followed objects: handed out again without a free */
    __u32 name;                         /* number of the cache in cache_names, 0: none */
    __u32 slot_bytes;                   /* what an object takes */
};

/**
 * One object of so many is followed, to see whether its address comes again without a free. The address
 * decides, so it is always the same objects.
 */
#define SLABRATETOP_FOLLOWED_SHIFT 4

/** The tool's own counts. */
enum slabratetop_count {
    SLABRATETOP_NULL_FREES = SYS_COUNT_OWN, /* kfree() of NULL, or of the result of kmalloc(0) */
    SLABRATETOP_REUSED,                     /* followed objects whose address came again without a free */
    SLABRATETOP_NAMES_FULL,                 /* cache names that found no room */
};

#endif
