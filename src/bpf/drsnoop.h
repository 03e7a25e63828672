/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_DRSNOOP_H
#define BPF_DRSNOOP_H

/*
 * Events of `allium sys drsnoop`: a task that had to reclaim memory itself before it got any.
 */

#include "bpf/memcg.h"
#include "bpf/sys.h"

enum drsnoop_kind {
    DRSNOOP_DIRECT,    /* the machine, or a zone of it, was short */
    DRSNOOP_MEMCG,     /* its memory cgroup, or one above that, was at its limit */
    DRSNOOP_SOFTLIMIT, /* of a version 1 cgroup, within direct reclaim or kswapd */
    DRSNOOP_KINDS
};

struct drsnoop_event {
    struct sys_event head; /* of the beginning */
    __u64 duration_ns;
    __u64 reclaimed_pages;
    __u64 scanned_pages; /* that /proc/vmstat counts as pgscan */
    __u64 memcg;         /* of DRSNOOP_MEMCG: the id of the cgroup that was full; 0: none has a limit */
    __u64 limit_pages, usage_pages; /* of that one */
    __s64 free_pages;               /* of the machine, at the beginning; below 0: they cannot be found */
    __u32 gfp;
    __s16 order;
    __u8 kind;   /* enum drsnoop_kind */
    __u8 untold; /* not 0: the kernel does not tell which pages it looks at */
    __u8 limit;  /* enum memcg_limit */
    __u8 reserved[7];
};

enum drsnoop_count {
    DRSNOOP_BEGUN_BEFORE = SYS_COUNT_OWN, /* ends of reclaims that began before we did */
    DRSNOOP_UNDER_WAY,                    /* reclaims that had not ended when we did */
};

#endif
