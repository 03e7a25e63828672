/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_MIGRATE_BPF_H
#define BPF_MIGRATE_BPF_H

/*
 * What is known of a migration of pages: why it is done, for whom, the nodes of a folio, and why a folio stayed.
 *
 * Runs in: the kernel.
 */

#include "bpf/kernel_migration.bpf.h"
#include "bpf/sys.bpf.h"

#include "bpf/numamove.h"

#define IS_REASON(name)                                                                                      \
    (bpf_core_enum_value_exists(enum migrate_reason, name) &&                                                \
     reason == (int)bpf_core_enum_value(enum migrate_reason, name))

static __always_inline bool is_kernel_thread(const struct task_struct *task)
{
    return BPF_CORE_READ(task, flags) & KERNEL_PF_KTHREAD;
}

/* The kernel's number of a reason as ours: the kernel's differ between versions. */
GLOBAL __u32 migrate_reason_of(int reason)
{
    const struct task_struct *task = (const void *)bpf_get_current_task();
    if (IS_REASON(MR_COMPACTION))
        return NUMAMOVE_COMPACTION;
    if (IS_REASON(MR_MEMORY_FAILURE))
        return NUMAMOVE_MEMORY_FAILURE;
    if (IS_REASON(MR_MEMORY_HOTPLUG))
        return NUMAMOVE_HOTPLUG;
    if (IS_REASON(MR_SYSCALL))
        return is_kernel_thread(task) ? NUMAMOVE_CPUSET : NUMAMOVE_SYSCALL;
    if (IS_REASON(MR_MEMPOLICY_MBIND))
        return NUMAMOVE_MBIND;
    if (IS_REASON(MR_NUMA_MISPLACED))
        return NUMAMOVE_BALANCING;
    if (IS_REASON(MR_CONTIG_RANGE))
        return NUMAMOVE_CONTIGUOUS;
    if (IS_REASON(MR_LONGTERM_PIN))
        return NUMAMOVE_PIN;
    if (IS_REASON(MR_DEMOTION))
        return NUMAMOVE_DEMOTION;
    if (IS_REASON(MR_DAMON))
        return NUMAMOVE_DAMON;
    return NUMAMOVE_UNNAMED + (__u32)reason;
}

/* A process that allium does not see in its PID namespace is nobody. */
static __always_inline void owner_of_task(struct numamove_owner *owner, const struct task_struct *task)
{
    owner->pid = process_of(task);
    owner->kind = owner->pid ? NUMAMOVE_PROCESS : NUMAMOVE_NOBODY;
    if (owner->pid)
        BPF_CORE_READ_STR_INTO(&owner->comm, task, group_leader, comm);
}

static __always_inline void owner_of_mm(struct numamove_owner *owner, const struct mm_struct *mm)
{
    const struct mm_struct___owner *owned = (const void *)mm;
    const struct task_struct *task = bpf_core_field_exists(owned->owner) ? BPF_CORE_READ(owned, owner) : NULL;
    owner->kind = NUMAMOVE_NOBODY;
    if (task)
        owner_of_task(owner, task);
}

/* Numbers of system calls, of 64-bit and 32-bit programs of x86. */
enum { NR_MIGRATE_PAGES = 256, NR_MOVE_PAGES = 279, NR_MIGRATE_PAGES_32 = 294, NR_MOVE_PAGES_32 = 317 };

/* The process or thread of the present move_pages(2) or migrate_pages(2): its number, which is 0 for the calling
 * process. -1: it is another system call. */
static __always_inline int number_asked(const struct task_struct *task)
{
#if defined(__TARGET_ARCH_x86)
    const struct pt_regs *regs = (const void *)bpf_task_pt_regs(bpf_get_current_task_btf());
    const __u64 call = BPF_CORE_READ(regs, orig_ax);
    if (BPF_CORE_READ(task, thread_info.status) & X86_TS_COMPAT)
        return call == NR_MIGRATE_PAGES_32 || call == NR_MOVE_PAGES_32 ? (int)BPF_CORE_READ(regs, bx) : -1;
    return call == NR_MIGRATE_PAGES || call == NR_MOVE_PAGES ? (int)BPF_CORE_READ(regs, di) : -1;
#else
    return -1;
#endif
}

/* The number means something in the PID namespace of the caller. Is that allium's? */
static __always_inline bool in_our_namespace(const struct task_struct *task)
{
    const struct pid *pid = BPF_CORE_READ(task, thread_pid);
    const __u32 level = BPF_CORE_READ(pid, level);
    struct upid number = {0};
    if (!config.pid_namespace)
        return level == 0;
    bpf_core_read(&number, sizeof(number), &pid->numbers[level]);
    return BPF_CORE_READ(number.ns, ns.inum) == config.pid_namespace;
}

/* The process that the current task migrates pages of, if the reason tells it. */
static __attribute__((noinline)) int owner_asked(struct numamove_owner *owner, __u32 reason)
{
    const struct task_struct *task = (const void *)bpf_get_current_task();
    int number = 0;
    if (reason == NUMAMOVE_SYSCALL)
        number = number_asked(task);
    else if (reason != NUMAMOVE_BALANCING && reason != NUMAMOVE_MBIND)
        return 0;
    if (!number)
        owner_of_task(owner, task);
    if (number <= 0 || !in_our_namespace(task))
        return 0;
    owner->kind = NUMAMOVE_NUMBER;
    owner->pid = (__u32)number;
    return 0;
}

static __always_inline __u64 folio_flags(__u64 folio)
{
    const struct folio___before_6_18 *old = (const void *)folio;
    const struct folio___since_6_18 *now = (const void *)folio;
    return bpf_core_field_exists(old->flags) ? BPF_CORE_READ(old, flags) : BPF_CORE_READ(now, flags.f);
}

#define HAS_FLAG(flags, name) ((flags) >> bpf_core_enum_value(enum pageflags___folio, name) & 1)

static __always_inline __u32 folio_pages(__u64 folio)
{
    const struct folio___before_6_15 *old = (const void *)folio;
    const struct folio___since_6_15 *now = (const void *)folio;
    if (!(folio_flags(folio) >> bpf_core_enum_value(enum pageflags, PG_head) & 1))
        return 1;
    return bpf_core_field_exists(old->_folio_nr_pages) ? BPF_CORE_READ(old, _folio_nr_pages)
                                                       : BPF_CORE_READ(now, _nr_pages);
}

/*
 * The node is in the highest bits of the flags. No type has the number of these bits, but a list of all zones of all
 * nodes is a type, and its length tells the number of nodes that the kernel can have.
 */
GLOBAL __s32 folio_node(__u64 folio)
{
    const struct zonelist *list = NULL;
    const __u64 zones = bpf_core_field_size(list->_zonerefs) / bpf_core_type_size(struct zoneref) - 1;
    const __u32 bits = log2_of(zones / bpf_core_enum_value(enum zone_type, __MAX_NR_ZONES));
    return bits ? (__s32)(folio_flags(folio) >> (64 - (bits & 63))) : 0;
}

#define MAPPING_KINDS 3u /* bits of folio.mapping: anonymous, or of a driver */

/*
 * Has something else than page tables, caches and the migration itself a reference to the folio? For a large folio
 * only pins for I/O tell.
 */
static __always_inline bool folio_is_pinned(__u64 address, __u64 flags)
{
    const struct folio___references *folio = (const void *)address;
    const __u64 mapping = (__u64)BPF_CORE_READ(folio, mapping);
    if (flags >> bpf_core_enum_value(enum pageflags, PG_head) & 1)
        return BPF_CORE_READ(folio, _pincount.counter) > 0;
    const int mapped = BPF_CORE_READ(folio, _mapcount.counter) + 1;
    const bool cached = mapping && !(mapping & MAPPING_KINDS);
    const int known = 1 + (mapped > 0 ? mapped : 0) +
                      (cached || (mapping & MAPPING_KINDS && HAS_FLAG(flags, PG_swapcache))) +
                      HAS_FLAG(flags, PG_private);
    return BPF_CORE_READ(folio, _refcount.counter) > known;
}

/* A folio that has not moved, by its place in a list: its pages, if it is pinned, and << 32 if it is written back. */
GLOBAL __u64 pages_of_stayed(__u64 at)
{
    const __u64 folio = at - bpf_core_field_offset(struct folio___references, lru),
                flags = folio_flags(folio);
    if (HAS_FLAG(flags, PG_writeback))
        return (__u64)folio_pages(folio) << 32;
    return folio_is_pinned(folio, flags) ? folio_pages(folio) : 0;
}

#define STAYED_MOST 64u

/* The sum of all folios that are left in a list. */
GLOBAL __u64 pages_that_stayed(__u64 list)
{
    __u64 pages = 0, at = list;
    for (__u32 i = 0; i < STAYED_MOST; i++) {
        at = (__u64)BPF_CORE_READ((const struct list_head *)at, next);
        if (!at || at == list)
            break;
        pages += pages_of_stayed(at);
    }
    return pages;
}

#endif
