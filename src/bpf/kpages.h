/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_KPAGES_H
#define BPF_KPAGES_H

/*
 * Rows of `allium sys kpages`. A row is a place that takes pages from the kernel's page allocator, or gives
 * pages back, or both.
 */

#include "bpf/sys.h"

/** Parts of the key, in the order in which they lie in it; the key ends after the last requested part. */
enum kpages_part {
    KPAGES_BY_ORDER = 1u << 0,
    KPAGES_BY_TYPE = 1u << 1,
    KPAGES_BY_STACK = 1u << 2,
    KPAGES_BY_PROCESS = 1u << 3,
    KPAGES_BY_COMM = 1u << 4,
    /* for the tool alone: rows by stack are merged by the name of the code that uses the page allocator */
    KPAGES_BY_FUNCTION = 1u << 5,
    KPAGES_BY_FILE = 1u << 6,
    KPAGES_BY_DIRECTORY = 1u << 7,
};

struct kpages_key {
    __u32 order, migrate_type;
    __s32 kernel_stack, user_stack;
    __u32 pid; /* of a user stack too */
    __u32 reserved;
    char comm[SYS_COMM_BYTES];
};

/** Pages are of 4 KiB (the machine's smallest size): a block of order 3 counts as eight. */
struct kpages_value {
    __u64 allocations, frees, failures; /* of blocks */
    __u64 allocated_pages, freed_pages;
    /* of the latest event, if user stacks are recorded: their names are those of that time */
    __u64 time_ns;
    __u32 gfp;           /* flags of all allocations together, including failed ones */
    __u32 orders;        /* bit N: there was a block of 2^N pages */
    __u32 migrate_types; /* bit N: enum migratetype */
    __u32 reserved;
};

/** A live block, by the number of its first frame. The row's key follows. */
struct kpages_live {
    __u32 order, reserved;
    struct kpages_key key;
};

/** The tool's own counts. */
enum kpages_count {
    KPAGES_REUSED =
        SYS_COUNT_OWN, /* pages of live blocks that were handed out again: their free had no event */
    /* freed pages that were allocated before the start, or whose allocation had no event */
    KPAGES_FREED_BEFORE,
    KPAGES_FREED_IN_PARTS, /* blocks that were split and freed in parts; nothing is lost */
    KPAGES_FAILED,         /* failed allocations; in rows, `failures` */
};

#endif
