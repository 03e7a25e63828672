/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_KERNEL_RECORDS_BPF_H
#define BPF_KERNEL_RECORDS_BPF_H

/*
 * Records of tracepoints, for programs that take their fields by name. As in kernel.h, only names mean anything.
 *
 * Runs in: the kernel. A part of kernel.h.
 */

#include "bpf/kernel.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* Tracepoints by their fields; ent is their common head. */
struct trace_entry {
    unsigned short type;
};

struct trace_event_raw_kmalloc {
    unsigned long call_site;
    const void *ptr;
    unsigned long bytes_req, bytes_alloc, gfp_flags;
};

struct trace_event_raw_kmem_cache_alloc {
    unsigned long call_site;
    const void *ptr;
    __u32 __data_loc_name;
    unsigned long bytes_req, bytes_alloc, gfp_flags;
};

/* Before 6.1 one class had both, and a second one both with _node. */
struct trace_event_raw_kmem_alloc {
    unsigned long call_site;
    const void *ptr;
    unsigned long bytes_req, bytes_alloc, gfp_flags;
};

struct trace_event_raw_kmem_alloc_node {
    unsigned long call_site;
    const void *ptr;
    unsigned long bytes_req, bytes_alloc, gfp_flags;
};

struct trace_event_raw_kfree {
    unsigned long call_site;
    const void *ptr;
};

struct trace_event_raw_kmem_cache_free {
    unsigned long call_site;
    const void *ptr;
    __u32 __data_loc_name;
};

struct trace_event_raw_mm_page_alloc {
    unsigned long pfn; /* -1: there was none */
    unsigned int order;
    unsigned long gfp_flags;
    int migratetype;
};

struct trace_event_raw_mm_page_free {
    unsigned long pfn;
    unsigned int order;
};

struct trace_event_raw_mm_vmscan_direct_reclaim_begin_template {
    int order;
    unsigned long gfp_flags;
};

struct trace_event_raw_mm_vmscan_direct_reclaim_end_template {
    unsigned long nr_reclaimed;
};

struct trace_event_raw_exceptions {
    unsigned long address, ip, error_code;
};

/* Before 6.14. */
struct trace_event_raw_x86_exceptions {
    unsigned long address, ip, error_code;
};

struct trace_event_raw_rss_stat {
    unsigned int mm_id, curr;
    int member;
    long size;
};

struct trace_event_raw_mm_shrink_slab_start {
    void *shrink;
    unsigned long total_scan;
};

struct trace_event_raw_mm_shrink_slab_end {
    int retval;
    long total_scan;
};

struct trace_event_raw_mm_vmscan_lru_isolate {
    unsigned long nr_requested, nr_scanned, nr_taken;
    unsigned int isolate_mode; /* before 6.8 */
    int lru;
};

struct trace_event_raw_mm_vmscan_lru_shrink_inactive {
    unsigned long nr_reclaimed, nr_dirty, nr_writeback, nr_immediate;
    unsigned int nr_activate0, nr_activate1;
    int reclaim_flags;
};

#pragma clang attribute pop

#endif
