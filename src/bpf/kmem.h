/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_KMEM_H
#define BPF_KMEM_H

/*
 * Rows of `allium sys kmem`. A row is a place that allocates, or one that frees, or both.
 */

#include "bpf/sys.h"

/** Parts of the key, in the order in which they lie in it: a key reaches as far as it is asked for. */
enum kmem_part {
    KMEM_BY_SITE = 1u << 0,
    KMEM_BY_STACK = 1u << 1,
    KMEM_BY_PROCESS = 1u << 2,
    /* With KMEM_BY_SITE, of which the tool then puts those together that are in the same one: */
    KMEM_BY_FUNCTION = 1u << 3,
    KMEM_BY_FILE = 1u << 4,
    KMEM_BY_DIRECTORY = 1u << 5,
};

struct kmem_key {
    __u64 call_site;
    __s32 kernel_stack, user_stack;
    __u32 pid; /* of a user stack too */
    __u32 reserved;
    char comm[SYS_COMM_BYTES];
};

struct kmem_value {
    __u64 allocations, frees;
    __u64 requested_bytes, allocated_bytes;
    __u64 cache, named_at; /* the latest struct kmem_cache, and where its name lies; 0: none seen */
    __u64 time_ns;         /* of the latest, where user stacks are taken: they have names at that time */
    __u32 gfp;             /* of all allocations together */
    __u32 name;            /* the cache's number in cache_names, 0: none; KMEM_AND_OTHERS */
};

#define KMEM_AND_OTHERS (1u << 31)

/** An object that is live, by its address. Ends with its row's key, as far as that reaches. */
struct kmem_live {
    __u64 time_ns;
    __u32 requested_bytes, allocated_bytes; /* the largest object is some MiB */
    struct kmem_key key;
};

/** Counts of its own. */
enum kmem_count {
    KMEM_NULL_FREES = SYS_COUNT_OWN, /* kfree() of NULL, or of what kmalloc(0) gives */
    KMEM_REUSED,                     /* a live object's address was handed out again: its free had no event */
    KMEM_NAMES_FULL,                 /* times a cache's name found no room */
    KMEM_FREED_BEFORE, /* frees of objects from before the start, or of ones that were not followed */
};

#endif
