/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_HFAULTS_FUNCTIONS_BPF_H
#define BPF_HFAULTS_FUNCTIONS_BPF_H

/*
 * What the programs at begin and end of the kernel's functions do, be they fentry and fexit or kprobes. They know what
 * no tracepoint tells: faults of memory that nothing touches, the page of zeros, what becomes of huge pages.
 *
 * Runs in: the kernel. A part of hfaults.bpf.c.
 */

#include "bpf/hfaults_fault.bpf.h"

#define VALUE(name) bpf_core_enum_value(enum vm_fault_reason, name)
#define FAILED                                                                                               \
    (VALUE(VM_FAULT_OOM) | VALUE(VM_FAULT_SIGBUS) | VALUE(VM_FAULT_HWPOISON) |                               \
     VALUE(VM_FAULT_HWPOISON_LARGE) | VALUE(VM_FAULT_SIGSEGV) | VALUE(VM_FAULT_FALLBACK))

static __always_inline int fault_begins(const void *vma, __u64 address, __u32 flags, const void *regs)
{
    if (open_now()) /* its end was missed */
        count(HFAULTS_UNENDED);
    open_fault((__u64)vma, address,
               (regs ? 0 : HFAULTS_NO_TOUCH) |
                   (flags & bpf_core_enum_value(enum fault_flag, FAULT_FLAG_WRITE) ? HFAULTS_WRITES : 0));
    return 0;
}

/* One that will be tried again begins anew then, and its mapping may be gone by now. */
static __always_inline int fault_ends(void *ctx, __u32 result)
{
    struct hfaults_open *o = open_now();
    if (!o)
        return 0;
    __u32 which = mark_of_transparent(o->got, o->flags);
    const struct vm_area_struct *vma = (const void *)o->vma;
    if (which < HFAULTS_MARKS && !(result & (FAILED | VALUE(VM_FAULT_RETRY))) &&
        !(BPF_CORE_READ(vma, vm_flags) & KERNEL_VM_HUGETLB) && wanted())
        settle(ctx, class_of_vma(vma), which, o->flags & HFAULTS_NO_TOUCH, o->began_ns);
    o->flags = 0;
    return 0;
}

/* Memory that is pinned gets here without handle_mm_fault() before 6.5. */
static __always_inline int hugetlb_begins(const void *vma, __u64 address)
{
    struct hfaults_open *o = open_now();
    if (!o)
        open_fault((__u64)vma, address, HFAULTS_NO_TOUCH | HFAULTS_DIRECT);
    return 0;
}

static __always_inline int hugetlb_ends(void *ctx, __u32 result)
{
    struct hfaults_open *o = open_now();
    if (!o)
        return 0;
    const struct vm_area_struct *vma = (const void *)o->vma;
    const __u64 page_bytes = BPF_CORE_READ(vma, vm_file, f_inode, i_sb, s_blocksize);
    if (!(result & VALUE(VM_FAULT_RETRY)) && wanted())
        settle(ctx, MAPPING_HUGETLB, result & FAILED ? HFAULTS_HUGETLB_FAILED : mark_of_hugetlb(page_bytes),
               o->flags & HFAULTS_NO_TOUCH, o->began_ns);
    if (o->flags & HFAULTS_DIRECT)
        o->flags = 0;
    return 0;
}

/* Without a page of its own it has mapped the one of zeros. */
static __always_inline int huge_ends(__u32 result)
{
    struct hfaults_open *o = open_now();
    if (o && !(result & (FAILED | VALUE(VM_FAULT_RETRY))) && !(o->flags & HFAULTS_WRITES) &&
        o->got == HFAULTS_PAGE_NONE)
        o->flags |= HFAULTS_ZEROS;
    return 0;
}

/* ---- what becomes of huge pages ---- */

static __always_inline int happened(void *ctx, const struct vm_area_struct *vma, __u32 what)
{
    const struct task_struct *owner = vma ? owner_of(BPF_CORE_READ(vma, vm_mm)) : NULL;
    struct hfaults_value *v =
        wanted_of(owner) ? row_of(owner ? NULL : ctx, owner, vma ? class_of_vma(vma) : MAPPING_OTHER, 0)
                         : NULL;
    if (v) {
        mark(v, what);
        row_done(v);
    }
    return 0;
}

/* Callers do not look whether a huge page is mapped there before they have the lock. */
static __always_inline bool maps_huge(const void *pmd)
{
    __u64 entry = 0;
    bpf_probe_read_kernel(&entry, sizeof(entry), pmd);
    return entry & X86_PAGE_PSE;
}

static __always_inline struct hfaults_open *slot_of_thread(void)
{
    __u32 tid;
    struct hfaults_open *o = slot_now(&tid);
    if (o && o->tid != tid) {
        *o = (struct hfaults_open){.tid = tid};
    }
    return o;
}

/* Since 6.12 __split_huge_pmd() calls split_huge_pmd_locked(), or contains it; others call it, too. */
static __always_inline int split_begins(void *ctx, const struct vm_area_struct *vma, const void *pmd)
{
    struct hfaults_open *o = slot_of_thread();
    if (o)
        o->flags |= HFAULTS_SPLITS;
    return maps_huge(pmd) ? happened(ctx, vma, HFAULTS_SPLIT_MAPPING) : 0;
}

static __always_inline int split_ends(void)
{
    struct hfaults_open *o = slot_of_thread();
    if (o)
        o->flags &= ~HFAULTS_SPLITS;
    return 0;
}

static __always_inline int split_locked(void *ctx, const struct vm_area_struct *vma, const void *pmd)
{
    const struct hfaults_open *o = slot_of_thread();
    if (o && o->flags & HFAULTS_SPLITS)
        return 0;
    return maps_huge(pmd) ? happened(ctx, vma, HFAULTS_SPLIT_MAPPING) : 0;
}

/* The kernel counts those as large as a huge page; before 6.6, all, and the order lies elsewhere. */
static __always_inline int page_split_begins(const struct page *page, bool counts_all)
{
    struct hfaults_open *o = slot_of_thread();
    __u64 head = BPF_CORE_READ(page, compound_head);
    const struct folio *folio = (const void *)(head & 1 ? head - 1 : (__u64)page);
    if (o && (counts_all || (BPF_CORE_READ(folio, _flags_1) & 0xff) >= huge_order))
        o->flags |= HFAULTS_SPLITS_BIG;
    return 0;
}

/* Its processes are not known: the row is of the task that splits it. */
static __always_inline int page_split_ends(void *ctx, int result)
{
    struct hfaults_open *o = slot_of_thread();
    if (!o || !(o->flags & HFAULTS_SPLITS_BIG))
        return 0;
    o->flags &= ~HFAULTS_SPLITS_BIG;
    return result ? 0 : happened(ctx, NULL, HFAULTS_SPLIT_PAGE);
}

#endif
