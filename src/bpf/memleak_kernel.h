/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_MEMLEAK_KERNEL_H
#define BPF_MEMLEAK_KERNEL_H

/*
 * Rows of the kernel mode of `allium sys memleak`. A row is a place that allocates, with what it has allocated and what
 * is not freed yet: objects of the slab allocator, or blocks of pages.
 */

#include "bpf/sys.h"

/** Parts of the key; the key ends after the last requested part. */
enum memleak_kernel_part {
    MEMLEAK_KERNEL_BY_CACHE = 1u << 0,
    MEMLEAK_KERNEL_BY_SITE = 1u << 1,
    MEMLEAK_KERNEL_BY_STACK = 1u << 2,
};

enum memleak_kernel_kind {
    MEMLEAK_KERNEL_SLAB,
    MEMLEAK_KERNEL_PAGES,   /* that stay where they are: the kernel's own */
    MEMLEAK_KERNEL_MOVABLE, /* that may be moved: as a rule, memory of processes and of files */
    MEMLEAK_KERNEL_KINDS
};

struct memleak_kernel_key {
    __u32 kind; /* enum memleak_kernel_kind */
    /* number of its cache in cache_names, or MEMLEAK_KERNEL_LARGE; 0: none. Rows that differ in it alone are merged,
     * unless they are by cache */
    __u32 cache;
    /* of blocks also by site: their event does not tell the call, so that the tool takes it from the stack */
    __s32 kernel_stack, user_stack;
    __u64 call_site;
    __u32 pid; /* of a user stack */
    __u32 reserved;
};

/** Of the objects of a key whose address was handed out again: their free had no event. */
struct memleak_kernel_value {
    __u64 unseen_frees;
};

/** A live object, by its address, or a live block, by the number of its first frame. The row's key follows. */
struct memleak_kernel_live {
    __u64 time_ns; /* CLOCK_MONOTONIC */
    __u32 order;   /* of a block */
    __u32 bytes;   /* what was allocated, by which it was sampled; of a block that was split, the whole one */
    struct memleak_kernel_key key;
};

#define MEMLEAK_KERNEL_CACHES_MOST 4096u
#define MEMLEAK_KERNEL_LARGE       (1u << 30) /* the name of objects of whole pages */

#define MEMLEAK_KERNEL_PERIOD_MOST (1u << 24)

/** A cache, by its address. Another one may be made at that address: then its name is at another place. */
struct memleak_kernel_cache {
    __u64 name_address;
    __u32 name, reserved;
};

/** The tool's own counts. */
enum memleak_kernel_count {
    MEMLEAK_KERNEL_UNSEEN_FREES = SYS_COUNT_OWN, /* live objects whose address was handed out again */
    MEMLEAK_KERNEL_UNSEEN_PAGES,                 /* live blocks likewise */
    MEMLEAK_KERNEL_FREED_BEFORE,   /* frees of objects from before the start, or that are not followed */
    MEMLEAK_KERNEL_PAGES_BEFORE,   /* freed pages likewise */
    MEMLEAK_KERNEL_FREED_IN_PARTS, /* blocks that were split and freed in parts; nothing is lost */
    MEMLEAK_KERNEL_NAMES_FULL,     /* cache names that found no room */
    MEMLEAK_KERNEL_FREES_LOST,     /* frees that could not be recorded: their objects stay live */
    MEMLEAK_KERNEL_SAMPLED,        /* objects and blocks that were sampled */
};

#endif
