/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_KERNEL_MIGRATION_BPF_H
#define BPF_KERNEL_MIGRATION_BPF_H

/*
 * Types of the kernel that have to do with the migration of pages. As in kernel.h, only names mean anything.
 *
 * Runs in: the kernel. A part of kernel.h.
 */

#include "bpf/kernel.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct folio___before_6_18 {
    unsigned long flags;
};

typedef struct {
    unsigned long f;
} memdesc_flags_t;

struct folio___since_6_18 {
    memdesc_flags_t flags;
};

/* Number of pages; of large ones only. */
struct folio___before_6_15 {
    unsigned int _folio_nr_pages;
};

struct folio___since_6_15 {
    unsigned int _nr_pages;
};

struct folio___references {
    struct list_head lru;
    void *mapping;
    struct {
        int counter;
    } _mapcount, _refcount, _pincount; /* _pincount: of large ones only */
};

enum pageflags___folio { PG_writeback = 1, PG_swapcache = 10, PG_private = 14 };

struct mm_struct___owner {
    struct task_struct *owner; /* with CONFIG_MEMCG */
};

/* Their lengths tell how many nodes the kernel can have. */
struct zoneref {
    int zone_idx;
};

struct zonelist {
    struct zoneref _zonerefs[1];
};

enum zone_type { __MAX_NR_ZONES = 5 };

enum migrate_reason {
    MR_COMPACTION,
    MR_MEMORY_FAILURE,
    MR_MEMORY_HOTPLUG,
    MR_SYSCALL,
    MR_MEMPOLICY_MBIND,
    MR_NUMA_MISPLACED,
    MR_CONTIG_RANGE,
    MR_LONGTERM_PIN,
    MR_DEMOTION,
    MR_DAMON, /* since 6.11 */
};

/* Tracepoints by their fields. */
struct trace_event_raw_mm_migrate_pages_start {
    int reason;
};

struct trace_event_raw_mm_migrate_pages {
    unsigned long succeeded, failed, thp_succeeded, thp_failed, thp_split;
    unsigned long large_folio_split; /* since 6.7 */
    int reason;
};

struct trace_event_raw_sched_move_numa {
    int src_nid, dst_nid;
};

struct trace_event_raw_sched_numa_pair_template {
    int src_nid;
    int dst_tgid, dst_nid;
};

#pragma clang attribute pop

enum { KERNEL_NO_MEMORY = 12 }; /* ENOMEM */

#endif
