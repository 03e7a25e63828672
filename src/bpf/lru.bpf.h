/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_LRU_BPF_H
#define BPF_LRU_BPF_H

/*
 * Interprets mm_vmscan_lru_isolate: which list of pages an event is about, and how many of the pages the
 * kernel counts as scanned, in pgscan_anon and pgscan_file of /proc/vmstat.
 *
 * The classic lists count all pages that they scanned (nr_scanned). The multi-generational LRU counts the
 * pages that it took (nr_taken); its nr_scanned includes pages that were only moved to another generation. It
 * has had this event since 6.8, when the argument isolate_mode was removed; before that it reports nothing.
 *
 * Runs in: the kernel.
 */

#include "bpf/memcg.bpf.h"
#include "bpf/sys.bpf.h"

/* The classic lists are never asked for more at once (SWAP_CLUSTER_MAX). The other LRU is, for up to 4096, in
 * most kernels. */
#define LRU_CLASSIC_MOST 32u

static __always_inline bool lru_multigen_is_silent(void)
{
    return bpf_core_field_exists(struct trace_event_raw_mm_vmscan_lru_isolate, isolate_mode);
}

/** Returns the argument `lru` of the event, by its position. */
static __always_inline __u32 lru_argument(const __u64 *ctx)
{
    __u64 lru;
    /* Each branch has an instruction of its own: otherwise the compiler would compute an address first, which
     * the verifier refuses. */
    if (lru_multigen_is_silent())
        asm volatile("%0 = *(u64 *)(%1 + 56)" : "=r"(lru) : "r"(ctx));
    else
        asm volatile("%0 = *(u64 *)(%1 + 48)" : "=r"(lru) : "r"(ctx));
    return (__u32)lru;
}

/** Returns 0: inactive anonymous pages, 1: inactive file pages, -1: another list. */
static __always_inline int lru_inactive(__u32 lru)
{
    if (lru == bpf_core_enum_value(enum lru_list___kernel, LRU_INACTIVE_ANON))
        return 0;
    return lru == bpf_core_enum_value(enum lru_list___kernel, LRU_INACTIVE_FILE) ? 1 : -1;
}

/*
 * Returns whether the multi-generational LRU is turned on (/sys/kernel/mm/lru_gen/enabled). A flag in each
 * cgroup's lists of each node tells; all flags change together, so those of the running task's cgroup are
 * read.
 */
static __attribute__((noinline)) int lru_is_multigen(void)
{
    const struct task_struct *task = (const void *)bpf_get_current_task();
    if (!bpf_core_field_exists(struct lruvec, lrugen) ||
        !bpf_core_enum_value_exists(enum cgroup_subsys_id___memory, memory_cgrp_id))
        return 0;
    return BPF_CORE_READ(memcg_of(memory_css(task)), nodeinfo[0], lruvec.lrugen.enabled);
}

/** Returns whether the task reclaims pages for which this kernel has no event. */
static __always_inline bool lru_is_silent(void)
{
    return lru_multigen_is_silent() && lru_is_multigen();
}

/** Returns how many of the event's pages the kernel counts. */
static __always_inline __u64 lru_counted(__u64 nr_requested, __u64 nr_scanned, __u64 nr_taken)
{
    if (nr_scanned == nr_taken || lru_multigen_is_silent())
        return nr_scanned;
    return nr_requested > LRU_CLASSIC_MOST || lru_is_multigen() ? nr_taken : nr_scanned;
}

#endif
