/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_LRU_BPF_H
#define BPF_LRU_BPF_H

/*
 * What mm_vmscan_lru_isolate tells: of which list of pages it speaks, and how many of them the kernel counts as looked
 * at, in pgscan_anon and pgscan_file of /proc/vmstat.
 *
 * The two lists of old count all that they looked at (nr_scanned). The multi-generational LRU counts what it took
 * (nr_taken): its nr_scanned has also those that it only sorted into another generation. It has this event since 6.8,
 * as the argument isolate_mode went; before that it tells nothing.
 *
 * Runs in: the kernel.
 */

#include "bpf/memcg.bpf.h"
#include "bpf/sys.bpf.h"

/* The lists of old are never asked for more at once (SWAP_CLUSTER_MAX); the other LRU is, for 4096, in most kernels. */
#define LRU_CLASSIC_MOST 32u

static __always_inline bool lru_multigen_is_silent(void)
{
    return bpf_core_field_exists(struct trace_event_raw_mm_vmscan_lru_isolate, isolate_mode);
}

/** The argument `lru` of the event, by its position. */
static __always_inline __u32 lru_argument(const __u64 *ctx)
{
    __u64 lru;
    /* Each arm with an instruction of its own: the compiler would choose an address first, which the verifier
     * refuses. */
    if (lru_multigen_is_silent())
        asm volatile("%0 = *(u64 *)(%1 + 56)" : "=r"(lru) : "r"(ctx));
    else
        asm volatile("%0 = *(u64 *)(%1 + 48)" : "=r"(lru) : "r"(ctx));
    return (__u32)lru;
}

/** 0: inactive anonymous pages, 1: inactive pages of files, -1: another list. */
static __always_inline int lru_inactive(__u32 lru)
{
    if (lru == bpf_core_enum_value(enum lru_list___kernel, LRU_INACTIVE_ANON))
        return 0;
    return lru == bpf_core_enum_value(enum lru_list___kernel, LRU_INACTIVE_FILE) ? 1 : -1;
}

/*
 * Is the multi-generational LRU turned on (/sys/kernel/mm/lru_gen/enabled)? It says so in each cgroup's lists of each
 * node, which are all turned at once; of all, those of the running task's cgroup are at hand.
 */
static __attribute__((noinline)) int lru_is_multigen(void)
{
    const struct task_struct *task = (const void *)bpf_get_current_task();
    if (!bpf_core_field_exists(struct lruvec, lrugen) ||
        !bpf_core_enum_value_exists(enum cgroup_subsys_id___memory, memory_cgrp_id))
        return 0;
    return BPF_CORE_READ(memcg_of(memory_css(task)), nodeinfo[0], lruvec.lrugen.enabled);
}

/** Whether the task reclaims pages of which this kernel says nothing. */
static __always_inline bool lru_is_silent(void)
{
    return lru_multigen_is_silent() && lru_is_multigen();
}

/** Of the event's pages, those that the kernel counts. */
static __always_inline __u64 lru_counted(__u64 nr_requested, __u64 nr_scanned, __u64 nr_taken)
{
    if (nr_scanned == nr_taken || lru_multigen_is_silent())
        return nr_scanned;
    return nr_requested > LRU_CLASSIC_MOST || lru_is_multigen() ? nr_taken : nr_scanned;
}

#endif
