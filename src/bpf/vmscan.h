/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_VMSCAN_H
#define BPF_VMSCAN_H

/* Rows of `allium sys vmscan`: what a kind of reclaim costs, and what it yields. */

#include "bpf/sys.h"

/** Kinds of reclaim. Those before VMSCAN_SLAB reclaim pages; a later one of them may be nested in an earlier
 * one. */
enum vmscan_phase {
    VMSCAN_KSWAPD,
    VMSCAN_DIRECT,
    VMSCAN_NODE,      /* for a node's own sake, or requested by its file `reclaim` */
    VMSCAN_MEMCG,     /* for the limit of a memory cgroup */
    VMSCAN_SOFTLIMIT, /* of a version 1 cgroup, within kswapd or direct reclaim */
    VMSCAN_SLAB,      /* one call of a shrinker, within any of them or by itself (drop_caches) */
    VMSCAN_PHASES,
    VMSCAN_WAKEUP = VMSCAN_PHASES, /* kswapd is woken */
    /* pages reclaimed outside these phases: in one that began before the tool, or one without an event */
    VMSCAN_OTHER,
    VMSCAN_NONE, /* for `within`: in no phase */
};

enum vmscan_part {
    VMSCAN_BY_SHRINKER = 1u << 0,
    VMSCAN_BY_PROCESS = 1u << 1,
    VMSCAN_BY_COMM = 1u << 2,
};

/** Parts of the key, in the order in which they are requested. */
struct vmscan_key {
    __u32 phase, within; /* enum vmscan_phase */
    __u64 shrinker;      /* address of its function */
    __u32 pid, reserved;
    char comm[SYS_COMM_BYTES];
};

/** The pages that /proc/vmstat counts as pgscan and pgsteal: [0] anonymous (and shmem), [1] of files. */
struct vmscan_value {
    __u64 times, duration_ns, longest_ns;
    __u64 scanned[2], reclaimed[2];
    __u64 dirty, writeback, activated, written;
    __u64 objects_scanned, objects_freed;
    __u64 untold; /* not 0: the kernel did not report the pages */
};

/** The phases a thread is in; nanoseconds of CLOCK_MONOTONIC, 0: not in it. */
struct vmscan_task {
    __u64 began_ns[VMSCAN_PHASES];
    __u64 step_ns; /* time of the last event in kswapd */
    __u64 shrinker, objects;
};

enum vmscan_count {
    VMSCAN_BEGUN_BEFORE = SYS_COUNT_OWN, /* ends of phases that began before the tool */
    VMSCAN_UNDER_WAY,                    /* phases that had not ended when the tool did */
    VMSCAN_UNTOLD,                       /* phases whose pages the kernel did not report */
};

#endif
