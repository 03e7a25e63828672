/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_KPAGES_H
#define BPF_KPAGES_H

/*
 * Rows of `allium sys kpages`. A row is a place that takes pages from the kernel's page allocator, or gives some back,
 * or both.
 */

#include "bpf/sys.h"

/** Parts of the key, in the order in which they lie in it: a key reaches as far as it is asked for. */
enum kpages_part {
    KPAGES_BY_ORDER = 1u << 0,
    KPAGES_BY_TYPE = 1u << 1,
    KPAGES_BY_STACK = 1u << 2,
    KPAGES_BY_PROCESS = 1u << 3,
};

struct kpages_key {
    __u32 order, migrate_type;
    __s32 kernel_stack, user_stack;
    __u32 pid; /* of a user stack too */
    __u32 reserved;
    char comm[SYS_COMM_BYTES];
};

/** Pages are of 4 KiB (the machine's smallest): one of order 3 counts as eight. */
struct kpages_value {
    __u64 allocations, frees, failures; /* of blocks */
    __u64 allocated_pages, freed_pages;
    __u64 time_ns;       /* of the latest, where user stacks are taken: they have names at that time */
    __u32 gfp;           /* of all allocations together, those that failed included */
    __u32 orders;        /* bit N: there was a block of 2^N pages */
    __u32 migrate_types; /* bit N: enum migratetype */
    __u32 reserved;
};

#define KPAGES_ORDERS 11u /* blocks of 2^0 to 2^10 pages: larger ones do not come from the page allocator */

/** A block that is live, by its frame number (from whichever beginning). With its row's key. */
struct kpages_live {
    __u32 order, reserved;
    struct kpages_key key;
};

/** Counts of its own. */
enum kpages_count {
    KPAGES_REUSED =
        SYS_COUNT_OWN,     /* pages of live blocks that were handed out again: their free had no event */
    KPAGES_FREED_BEFORE,   /* pages freed from before the start, or whose allocation has no event */
    KPAGES_FREED_IN_PARTS, /* blocks that were split and came back in pieces; none is lost */
    KPAGES_FAILED,         /* allocations that failed: in rows, as failures */
};

#endif
