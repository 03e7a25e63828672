/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_MEMCG_BPF_H
#define BPF_MEMCG_BPF_H

/*
 * Memory cgroups as the kernel has them: of the v1 hierarchy or of v2, whichever the controller is bound to.
 *
 * Runs in: the kernel.
 */

#include "bpf/memcg.h"
#include "bpf/sys.bpf.h"

#define MEMCG_LEVELS 32u /* cgroups to check above the task's */

/* The kernel's value for "no limit": as many pages as a long can count in bytes. */
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

/* This limit counts memory and swap together; v2 has no such limit. */
static __always_inline bool memcg_is_v1(const struct cgroup_subsys_state *css)
{
    const struct task_struct *task = (const void *)bpf_get_current_task();
    return BPF_CORE_READ(css, cgroup, root) != BPF_CORE_READ(task, cgroups, dfl_cgrp, root);
}

static __always_inline __s64 counter_room(const struct page_counter *c)
{
    return (__s64)BPF_CORE_READ(c, max) - BPF_CORE_READ(c, usage.counter);
}

/* Returns whether a request could be refused here. Each CPU keeps up to 64 pages in stock. */
#define MEMCG_STOCK_PAGES 64u

static __always_inline bool counter_is_full(const struct page_counter *c)
{
    __u64 max = BPF_CORE_READ(c, max);
    __u64 stock = max / 8 < MEMCG_STOCK_PAGES ? max / 8 : MEMCG_STOCK_PAGES;
    return max < MEMCG_UNLIMITED && counter_room(c) <= (__s64)stock;
}

/* Of the limits of a group, the one with less room left. */
static __always_inline const struct page_counter *memcg_counter(const struct cgroup_subsys_state *css,
                                                                enum memcg_limit *of)
{
    const struct mem_cgroup *memcg = memcg_of(css);
    const struct page_counter *memory = &memcg->memory, *both = &memcg->memsw;
    *of =
        memcg_is_v1(css) && counter_room(both) < counter_room(memory) ? MEMCG_MEMORY_AND_SWAP : MEMCG_MEMORY;
    return *of == MEMCG_MEMORY ? memory : both;
}

/* The kernel holds it while it kills for a group, and for all below that. */
static __always_inline bool memcg_is_locked(const struct cgroup_subsys_state *css)
{
    const struct mem_cgroup *memcg = memcg_of(css);
    return bpf_core_field_exists(memcg->oom_lock) && BPF_CORE_READ(memcg, oom_lock);
}

#define MEMCG_ENOUGH 0x7fffffffffffffffll

/*
 * Returns how many pages still fit into a group that may be the reason why memory is short for the current
 * task. MEMCG_ENOUGH: it is not the reason. It is a candidate if it has a limit and contains the task, or if
 * it exceeds its limit, which happens only when the limit was lowered.
 */
GLOBAL __s64 memcg_room(__u64 css_at)
{
    const struct cgroup_subsys_state *css = (const void *)css_at;
    const struct task_struct *task = (const void *)bpf_get_current_task();
    const struct cgroup *asks = BPF_CORE_READ(memory_css(task), cgroup);
    enum memcg_limit of;
    const struct page_counter *c = memcg_counter(css, &of);
    __s64 room = counter_room(c);
    if (BPF_CORE_READ(c, max) >= MEMCG_UNLIMITED)
        return MEMCG_ENOUGH;
    if (room >= 0 &&
        !cgroup_below(asks, BPF_CORE_READ(css, cgroup, level), BPF_CORE_READ(css, cgroup, kn, id)))
        return MEMCG_ENOUGH;
    return room;
}

/*
 * Returns which of two groups was the full one. `above` lies above `below`, which may be 0. It is a function,
 * because the verifier would otherwise follow each path through it once for each call.
 */
GLOBAL __u64 memcg_fuller(__u64 below, __u64 above)
{
    __s64 room = memcg_room(above);
    if (room == MEMCG_ENOUGH)
        return below;
    if (!below || memcg_is_locked((const void *)above))
        return above;
    if (memcg_is_locked((const void *)below))
        return below;
    __s64 least = memcg_room(below);
    return least > 0 && room < least ? above : below;
}

/*
 * The memory cgroup that was full, which no event tells: one that `task` is in. The one that the kernel has locked;
 * else the lowest that has no room at all, as a request is tried from below; else, as others may have given something
 * back meanwhile, the one that has the least. 0: none of them has a limit. Its struct cgroup_subsys_state.
 */
GLOBAL __u64 memcg_full(__u64 task)
{
    const struct cgroup_subsys_state *css = memory_css((const void *)task);
    __u64 full = 0;
    for (__u32 i = 0; i < MEMCG_LEVELS && css; i++, css = BPF_CORE_READ(css, parent))
        full = memcg_fuller(full, (__u64)css);
    return full;
}

#endif
