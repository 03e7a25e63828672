/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_MEMCG_BPF_H
#define BPF_MEMCG_BPF_H

/*
 * Memory cgroups as the kernel has them: of the v1 hierarchy or of v2, whichever the controller is bound to.
 *
 * Runs in: the kernel.
 */

#include "bpf/sys.bpf.h"

/* A limit of the kernel's that is none: pages that a long can count in bytes, whatever their size. */
#define MEMCG_UNLIMITED (1ull << 46)

static __always_inline const struct mem_cgroup *memcg_of(const struct cgroup_subsys_state *css)
{
    return css ? (const void *)((__u64)css - bpf_core_field_offset(struct mem_cgroup, css)) : NULL;
}

static __always_inline const struct kernfs_node *kernfs_parent(const struct kernfs_node *node)
{
    if (bpf_core_field_exists(node->__parent))
        return BPF_CORE_READ(node, __parent);
    return BPF_CORE_READ((const struct kernfs_node___before_6_15 *)node, parent);
}

/* Counts memory and swap together, which v2 does not. */
static __always_inline bool memcg_is_v1(const struct cgroup_subsys_state *css, const struct task_struct *task)
{
    return BPF_CORE_READ(css, cgroup, root) != BPF_CORE_READ(task, cgroups, dfl_cgrp, root);
}

/* Could a request be refused here? What CPUs keep in stock for later is 64 pages each. */
#define MEMCG_STOCK_PAGES 64u

static __always_inline bool counter_is_full(const struct page_counter *c)
{
    __u64 max = BPF_CORE_READ(c, max);
    __s64 usage = BPF_CORE_READ(c, usage.counter);
    __u64 stock = max / 8 < MEMCG_STOCK_PAGES ? max / 8 : MEMCG_STOCK_PAGES;
    return max < MEMCG_UNLIMITED && usage + stock >= max;
}

static __always_inline bool counter_is_over(const struct page_counter *c)
{
    return BPF_CORE_READ(c, usage.counter) > (__s64)BPF_CORE_READ(c, max);
}

#endif
