/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_SLABRATETOP_H
#define BPF_SLABRATETOP_H

/*
 * Rows of `allium sys slabratetop`: one for each slab cache, by its address, and where its name lies (see slab.h); 0
 * stands for what is too large for any.
 */

#include "bpf/sys.h"

struct slabratetop_key {
    __u64 cache, named_at;
};

struct slabratetop_value {
    __u64 allocations, frees;
    __u64 allocated_bytes, freed_bytes; /* of cache 0 the latter are not known */
    __u64 reused;     /* of the objects that are followed: handed out again without a free */
    __u32 name;       /* the cache's number in cache_names, 0: none */
    __u32 slot_bytes; /* what an object takes */
};

/**
 * One object in so many is followed, to see whether it comes again without a free: by its address, so always the same.
 */
#define SLABRATETOP_FOLLOWED_SHIFT 4

/** Counts of its own. */
enum slabratetop_count {
    SLABRATETOP_NULL_FREES = SYS_COUNT_OWN, /* kfree() of NULL, or of what kmalloc(0) gives */
    SLABRATETOP_REUSED,                     /* followed objects that came again without a free */
    SLABRATETOP_NAMES_FULL,                 /* times a cache's name found no room */
};

#endif
