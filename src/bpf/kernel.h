/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_KERNEL_H
#define BPF_KERNEL_H

/*
 * The kernel's types, as far as they are used: names and members are looked up in the BTF of the kernel that runs, so
 * neither order nor offsets here mean anything. What changed between kernels stands here and nowhere else.
 *
 * Runs in: the kernel. Written for 5.15 and later.
 */

typedef unsigned char __u8;
typedef signed char __s8;
typedef unsigned short __u16;
typedef signed short __s16;
typedef unsigned int __u32;
typedef signed int __s32;
typedef unsigned long long __u64;
typedef signed long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;

enum { false, true };

/* Numbers of the BPF interface, which never change. */
enum bpf_map_type {
    BPF_MAP_TYPE_HASH = 1,
    BPF_MAP_TYPE_ARRAY = 2,
    BPF_MAP_TYPE_PERCPU_HASH = 5,
    BPF_MAP_TYPE_PERCPU_ARRAY = 6,
    BPF_MAP_TYPE_STACK_TRACE = 7,
    BPF_MAP_TYPE_LRU_HASH = 9,
    BPF_MAP_TYPE_RINGBUF = 27,
    BPF_MAP_TYPE_TASK_STORAGE = 29,
};
enum { BPF_ANY, BPF_NOEXIST, BPF_EXIST };
enum { BPF_F_NO_PREALLOC = 1u << 0, BPF_F_USER_STACK = 1u << 8, BPF_F_FAST_STACK_CMP = 1u << 9 };
enum { BPF_RB_NO_WAKEUP = 1u << 0, BPF_RB_FORCE_WAKEUP = 1u << 1 };
enum { BPF_RB_AVAIL_DATA, BPF_RB_RING_SIZE, BPF_RB_CONS_POS, BPF_RB_PROD_POS };
enum { KERNEL_EFAULT = 14, KERNEL_EEXIST = 17, KERNEL_ENOSPC = 28 };
#define NULL ((void *)0)

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct kernfs_node {
    __u64 id;
};

struct cgroup {
    struct kernfs_node *kn;
    int level;
    struct cgroup *ancestors[0]; /* since 6.1 */
};

struct cgroup___before_6_1 {
    __u64 ancestor_ids[0];
};

struct cgroup_subsys_state {
    struct cgroup *cgroup;
};

struct css_set {
    struct cgroup_subsys_state *subsys[16];
    struct cgroup *dfl_cgrp;
};

enum cgroup_subsys_id { memory_cgrp_id_unused };
enum cgroup_subsys_id___memory { memory_cgrp_id = 4 };

struct task_struct {
    int pid, tgid;
    struct css_set *cgroups;
};

struct kmem_cache {
    const char *name;
    unsigned int size, object_size;
};

struct page {
    unsigned int page_type; /* its upper byte, since 6.11 */
    unsigned long compound_head;
};

struct page___before_6_11 {
    unsigned long flags; /* a struct since 6.18 */
};

struct page___before_5_17 {
    struct kmem_cache *slab_cache;
};

struct slab { /* the same memory as the page */
    struct kmem_cache *slab_cache;
};

enum pagetype { PGTY_slab = 0xf5 };
enum pageflags { PG_slab = 9 }; /* until 6.9 */

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

#pragma clang attribute pop

#endif
