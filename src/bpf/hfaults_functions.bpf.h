/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_HFAULTS_FUNCTIONS_BPF_H
#define BPF_HFAULTS_FUNCTIONS_BPF_H

/*
 * The kernel's functions that hfaults follows, by programs at their begin and end: fentry and fexit, or kprobes.
 *
 * Runs in: the kernel. A part of hfaults.bpf.c.
 */

struct mmu_gather;
struct list_head;
struct vm_fault;

SEC("fentry/handle_mm_fault")
int BPF_PROG(fentry_fault, struct vm_area_struct *vma, unsigned long address, unsigned int flags,
             struct pt_regs *regs)
{
    return fault_begins(vma, address, flags, regs);
}

SEC("fexit/handle_mm_fault")
int BPF_PROG(fexit_fault, struct vm_area_struct *vma, unsigned long address, unsigned int flags,
             struct pt_regs *regs, unsigned int result)
{
    return fault_ends(ctx, result);
}

SEC("kprobe/handle_mm_fault")
int BPF_KPROBE(kprobe_fault, const void *vma, unsigned long address, unsigned int flags, const void *regs)
{
    return fault_begins(vma, address, flags, regs);
}

SEC("kretprobe/handle_mm_fault") int BPF_KRETPROBE(kretprobe_fault, unsigned int result)
{
    return fault_ends(ctx, result);
}

SEC("fentry/hugetlb_fault")
int BPF_PROG(fentry_hugetlb, struct mm_struct *mm, struct vm_area_struct *vma, unsigned long address)
{
    return hugetlb_begins(vma, address);
}

SEC("fexit/hugetlb_fault")
int BPF_PROG(fexit_hugetlb, struct mm_struct *mm, struct vm_area_struct *vma, unsigned long address,
             unsigned int flags, unsigned int result)
{
    return hugetlb_ends(ctx, result);
}

SEC("kprobe/hugetlb_fault")
int BPF_KPROBE(kprobe_hugetlb, const void *mm, const void *vma, unsigned long address)
{
    return hugetlb_begins(vma, address);
}

SEC("kretprobe/hugetlb_fault") int BPF_KRETPROBE(kretprobe_hugetlb, unsigned int result)
{
    return hugetlb_ends(ctx, result);
}

SEC("fexit/do_huge_pmd_anonymous_page") int BPF_PROG(fexit_huge, struct vm_fault *vmf, unsigned int result)
{
    return huge_ends(result);
}

SEC("kretprobe/do_huge_pmd_anonymous_page") int BPF_KRETPROBE(kretprobe_huge, unsigned int result)
{
    return huge_ends(result);
}

SEC("fexit/zap_huge_pmd")
int BPF_PROG(fexit_zap, struct mmu_gather *tlb, struct vm_area_struct *vma, void *pmd, unsigned long address,
             int zapped)
{
    return zapped ? happened(ctx, vma, HFAULTS_ZAPPED) : 0;
}

SEC("kprobe/zap_huge_pmd")
int BPF_KPROBE(kprobe_zap, const void *tlb, const struct vm_area_struct *vma, const void *pmd)
{
    return maps_huge(pmd) ? happened(ctx, vma, HFAULTS_ZAPPED) : 0;
}

SEC("fentry/__split_huge_pmd") int BPF_PROG(fentry_split, struct vm_area_struct *vma, void *pmd)
{
    return split_begins(ctx, vma, pmd);
}

SEC("fexit/__split_huge_pmd") int BPF_PROG(fexit_split)
{
    return split_ends();
}

SEC("kprobe/__split_huge_pmd") int BPF_KPROBE(kprobe_split, const struct vm_area_struct *vma, const void *pmd)
{
    return split_begins(ctx, vma, pmd);
}

SEC("kretprobe/__split_huge_pmd") int BPF_KRETPROBE(kretprobe_split)
{
    return split_ends();
}

SEC("fentry/split_huge_pmd_locked")
int BPF_PROG(fentry_locked, struct vm_area_struct *vma, unsigned long address, void *pmd)
{
    return split_locked(ctx, vma, pmd);
}

SEC("kprobe/split_huge_pmd_locked")
int BPF_KPROBE(kprobe_locked, const struct vm_area_struct *vma, unsigned long address, const void *pmd)
{
    return split_locked(ctx, vma, pmd);
}

SEC("fentry/split_huge_page_to_list_to_order") int BPF_PROG(fentry_page, struct page *page)
{
    return page_split_begins(page, false);
}

SEC("fexit/split_huge_page_to_list_to_order")
int BPF_PROG(fexit_page, struct page *page, struct list_head *list, unsigned int order, int result)
{
    return page_split_ends(ctx, result);
}

SEC("kprobe/split_huge_page_to_list_to_order") int BPF_KPROBE(kprobe_page, const struct page *page)
{
    return page_split_begins(page, false);
}

SEC("kretprobe/split_huge_page_to_list_to_order") int BPF_KRETPROBE(kretprobe_page, int result)
{
    return page_split_ends(ctx, result);
}

/* Before 6.9. */
SEC("fentry/split_huge_page_to_list") int BPF_PROG(fentry_page_old, struct page *page)
{
    return page_split_begins(page, true);
}

SEC("fexit/split_huge_page_to_list")
int BPF_PROG(fexit_page_old, struct page *page, struct list_head *list, int result)
{
    return page_split_ends(ctx, result);
}

SEC("kprobe/split_huge_page_to_list") int BPF_KPROBE(kprobe_page_old, const struct page *page)
{
    return page_split_begins(page, true);
}

SEC("kretprobe/split_huge_page_to_list") int BPF_KRETPROBE(kretprobe_page_old, int result)
{
    return page_split_ends(ctx, result);
}

#endif
