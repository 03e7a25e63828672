/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_DRSNOOP_H
#define BPF_DRSNOOP_H

/* Events of `allium sys drsnoop`: a task had to reclaim memory itself before its request was met. */

#include "bpf/memcg.h"
#include "bpf/sys.h"

enum drsnoop_kind {
    DRSNOOP_DIRECT,    /* the machine, or a zone of it, was short */
    DRSNOOP_MEMCG,     /* its memory cgroup, or one above it, was at its limit */
    DRSNOOP_SOFTLIMIT, /* of a version 1 cgroup, within direct reclaim or kswapd */
    DRSNOOP_KINDS
};

struct drsnoop_event {
    struct sys_event head; /* of the start of the reclaim */
    __u64 duration_ns;
    __u64 reclaimed_pages;
    __u64 scanned_pages;            /* the pages that /proc/vmstat counts as pgscan */
    __u64 memcg;                    /* for DRSNOOP_MEMCG: the id of the full cgroup; 0: none has a limit */
    __u64 limit_pages, usage_pages; /* of that cgroup */
    __s64 free_pages;               /* of the machine, at the start; below 0: not known */
    __u32 gfp;
    __s16 order;
    __u8 kind;   /* enum drsnoop_kind */
    __u8 untold; /* not 0: the kernel does not report the pages that it scans */
    __u8 limit;  /* enum memcg_limit */
    __u8 reserved[7];
};

enum drsnoop_count {
    DRSNOOP_BEGUN_BEFORE = SYS_COUNT_OWN, /* ends of reclaims that began before the tool */
    DRSNOOP_UNDER_WAY,                    /* reclaims that had not ended when the tool did */
};

#endif
