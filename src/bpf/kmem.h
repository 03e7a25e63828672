/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_KMEM_H
#define BPF_KMEM_H

/* Rows of `allium sys kmem`. A row is a place that allocates, or frees, or both. */

#include "bpf/sys.h"

/** Parts of the key, in the order in which they lie in it; the key ends after the last requested part. */
enum kmem_part {
    KMEM_BY_SITE = 1u << 0,
    KMEM_BY_STACK = 1u << 1,
    KMEM_BY_PROCESS = 1u << 2,
    /* With KMEM_BY_SITE; the tool merges rows with the same values: */
    KMEM_BY_FUNCTION = 1u << 3,
    KMEM_BY_FILE = 1u << 4,
    KMEM_BY_DIRECTORY = 1u << 5,
    KMEM_BY_CACHE = 1u << 6,
    KMEM_BY_COMM = 1u << 7,
};

/** The parts whose rows are told apart by cache in the kernel, so that the tool can name the largest one. */
#define KMEM_TELL_CACHES (KMEM_BY_SITE | KMEM_BY_STACK | KMEM_BY_CACHE)

struct kmem_key {
    __u64 cache; /* struct kmem_cache; 0: the object is of whole pages, or caches are not told apart */
    __u64 call_site;
    __s32 kernel_stack, user_stack;
    __u32 pid; /* also for a user stack */
    __u32 reserved;
    char comm[SYS_COMM_BYTES];
};

struct kmem_value {
    __u64 allocations, frees;
    __u64 requested_bytes, allocated_bytes;
    __u64 freed_bytes;
    __u64 frees_of_pages; /* whose size is not known, and not in freed_bytes */
    __u64 name_address;   /* of the cache's name in the kernel; 0: not read yet */
    /* of the latest event, if user stacks are recorded: their names are those of that time */
    __u64 time_ns;
    __u64 named_bytes; /* in sums of the tool: allocated and freed bytes of the cache that `name` tells */
    __u32 gfp;         /* flags of all allocations together */
    __u32 name;        /* number of the cache in cache_names, or KMEM_PAGES; 0: none; and KMEM_AND_OTHERS */
};

#define KMEM_PAGES      (1u << 30)
#define KMEM_AND_OTHERS (1u << 31) /* the row has objects of other caches, too */

/** A live object, by its address. The row's key follows, as far as it is used. */
struct kmem_live {
    __u64 time_ns;
    __u32 requested_bytes, allocated_bytes; /* the largest object is some MiB */
    __u32 name;                             /* its cache, as in struct kmem_value */
    __u32 reserved;
    struct kmem_key key;
};

/** The tool's own counts. */
enum kmem_count {
    KMEM_NULL_FREES = SYS_COUNT_OWN, /* kfree() of NULL, or of the result of kmalloc(0) */
    /* the address of a live object was handed out again: its free had no event */
    KMEM_REUSED,
    KMEM_NAMES_FULL,   /* cache names that found no room */
    KMEM_FREED_BEFORE, /* frees of objects allocated before the start, or not followed */
    /* These are of recordings only. */
    KMEM_FREED_AFTER_LOSS,  /* frees of objects whose allocation was not seen, after events were lost */
    KMEM_FREED_UNEXPLAINED, /* ... of those that came where another object had been freed */
    KMEM_SETTLED,           /* live objects that were freed soon after the end */
};

#endif
