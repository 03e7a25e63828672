/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_MAPPED_BPF_H
#define BPF_MAPPED_BPF_H

/*
 * Finds the mapping at an address of the current process. bpf_find_vma() takes and releases a lock; in a page
 * fault it releases the lock in an interrupt, which takes ten times as long as the fault. This code walks the
 * tree without a lock, as the kernel's own fault handler does. Nodes are freed only after all possible
 * readers, including programs, have ended. The bounds of the mapping are checked; if another thread changed
 * it meanwhile, nothing is found.
 *
 * Runs in: the kernel, since 6.1; before that there is no such tree, and mapped_can_be_found() returns false.
 */

#include "bpf/sys.bpf.h"

#define MAPPED_LEVELS_MAX 8   /* nodes are half full at least: more mappings than the kernel allows by far */
#define MAPPED_PIVOTS     15u /* of the node with most */

struct mapped_node {
    __u64 parent, pivot[MAPPED_PIVOTS];
};

static __always_inline bool is_root_node(__u64 entry)
{
    return (entry & 3) == 2 && entry > 4096;
}

/* The last of a node's addresses is its parent's, and then 0 here. */
static __always_inline __u32 slot_of(const struct mapped_node *node, __u32 pivots, __u64 address)
{
    __u32 i = 0;
    for (; i < MAPPED_PIVOTS; i++)
        if (i == pivots || node->pivot[i] >= address || (i && !node->pivot[i]))
            break;
    return i;
}

/* The entry's low bits tell the kind of node. */
static __always_inline __u32 type_of_node(__u64 entry)
{
    return entry >> 3 & 15;
}

/*
 * Goes one level down. Returns 0 if the node cannot be read. GLOBAL, so that the verifier examines it once, and not at
 * each level.
 */
GLOBAL __u64 mapped_step(__u64 entry, __u64 address)
{
    struct mapped_node node;
    __u64 at = entry & ~0xffull, next = 0, slots = bpf_core_field_offset(struct maple_range_64, slot);
    __u32 pivots = MAPPED_PIVOTS;
    if (type_of_node(entry) == bpf_core_enum_value(enum maple_type, maple_arange_64)) {
        pivots = sizeof(((struct maple_arange_64 *)0)->pivot) / sizeof(long);
        slots = bpf_core_field_offset(struct maple_arange_64, slot);
    }
    if (bpf_probe_read_kernel(&node, sizeof(node), (const void *)at))
        return 0;
    __u64 slot = at + slots + slot_of(&node, pivots, address) * sizeof(void *);
    return bpf_probe_read_kernel(&next, sizeof(next), (const void *)slot) ? 0 : next;
}

static __always_inline bool mapped_can_be_found(void)
{
    return bpf_core_field_exists(struct mm_struct, mm_mt);
}

/*
 * Returns the struct vm_area_struct that ends above `address` and begins at or below it; NULL: there is none.
 */
static __attribute__((noinline)) __u64 mapped_find(const struct mm_struct *mm, __u64 address)
{
    bool leaf = false;
    if (!mapped_can_be_found())
        return 0;
    __u64 entry = (__u64)BPF_CORE_READ(mm, mm_mt.ma_root);
    if (!is_root_node(entry)) /* one mapping at most */
        return 0;
    for (int i = 0; i < MAPPED_LEVELS_MAX && !leaf; i++) {
        leaf = type_of_node(entry) < bpf_core_enum_value(enum maple_type, maple_range_64);
        entry = entry ? mapped_step(entry, address) : 0;
    }
    return leaf ? entry : 0;
}

#endif
