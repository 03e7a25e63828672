// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* `allium sys hfaults`: faults that ask for huge pages, and what becomes of the huge pages. */
#include "bpf/sys.bpf.h"

#include "bpf/hfaults.h"
#include "bpf/hfaults_fault.bpf.h"
#include "bpf/hfaults_functions.bpf.h"

/* The position of the result among the arguments of mm_khugepaged_scan_pmd; older kernels have one more before it. */
const volatile __u32 status_at = 4;

/* ---- the page allocator ---- */

SEC("raw_tp/mm_page_alloc")
int BPF_PROG(raw_alloc, const void *page, unsigned int order, unsigned int gfp, int type)
{
    return allocated((__u64)page, page != NULL, order, type);
}

SEC("raw_tp/mm_page_free") int BPF_PROG(raw_free, const void *page, unsigned int order)
{
    return freed((__u64)page, order);
}

SEC("tp/kmem/mm_page_alloc") int tp_alloc(struct trace_event_raw_mm_page_alloc *ctx)
{
    return allocated(ctx->pfn, ctx->pfn != ~0ul, ctx->order, ctx->migratetype);
}

SEC("tp/kmem/mm_page_free") int tp_free(struct trace_event_raw_mm_page_free *ctx)
{
    return freed(ctx->pfn, ctx->order);
}

/* ---- begin and end of faults, by exceptions and the kernel's counts ---- */

/*
 * Returns the class of the memory there, and above it what its fault came to. GLOBAL, so that the verifier goes on
 * once, and not from each way through it.
 */
#define CLASS_BITS 16
GLOBAL __u32 fault_at(__u64 address, __u32 got)
{
    struct process_mapping in = {0};
    classify(&in, address);
    if (in.class != MAPPING_HUGETLB)
        return in.class | mark_of_transparent(got, 0) << CLASS_BITS;
    return in.class | mark_of_hugetlb(in.page_bytes) << CLASS_BITS;
}

static __always_inline bool is_hugetlb(__u64 address)
{
    return (fault_at(address, HFAULTS_PAGE_NONE) & ((1u << CLASS_BITS) - 1)) == MAPPING_HUGETLB;
}

/*
 * If a fault never ends, a program gets a signal. A system call fails, which no event tells: it is seen when the next
 * fault begins, and then the mapping may be gone.
 */
static __always_inline int begins(void *ctx, __u64 address, bool by_kernel)
{
    if ((__s64)address < 0 || is_only_tried(by_kernel)) /* the kernel's own memory */
        return 0;
    const struct hfaults_open *o = open_now();
    if (UNLIKELY(o && o->flags & HFAULTS_IN_HUGETLB) && wanted())
        settle(NULL, MAPPING_HUGETLB, HFAULTS_HUGETLB_FAILED, false, o->began_ns);
    __u32 flags = !by_kernel ? 0 : HFAULTS_OF_KERNEL | (is_hugetlb(address) ? HFAULTS_IN_HUGETLB : 0);
    open_fault(0, address, flags);
    return 0;
}

SEC("raw_tp/page_fault_user") int BPF_PROG(raw_begin_user, __u64 address)
{
    return begins(ctx, address, false);
}

SEC("raw_tp/page_fault_kernel") int BPF_PROG(raw_begin_kernel, __u64 address)
{
    return begins(ctx, address, true);
}

#define BEGINS_NAMED(name, section, by_kernel)                                                               \
    SEC(section) int name(struct trace_event_raw_exceptions *ctx)                                            \
    {                                                                                                        \
        if (!bpf_core_type_exists(struct trace_event_raw_exceptions)) {                                      \
            struct trace_event_raw_x86_exceptions *old = (void *)ctx;                                        \
            return begins(ctx, old->address, by_kernel);                                                     \
        }                                                                                                    \
        return begins(ctx, ctx->address, by_kernel);                                                         \
    }

BEGINS_NAMED(tp_begin_user, "tp/exceptions/page_fault_user", false)
BEGINS_NAMED(tp_begin_kernel, "tp/exceptions/page_fault_kernel", true)

static __always_inline int ends(struct perf_context *ctx)
{
    struct hfaults_open *o = open_now();
    __u64 began_ns = 0;
    __u32 got = HFAULTS_PAGE_NONE;
    if (o) {
        began_ns = o->began_ns;
        got = o->got;
        o->flags = 0;
    }
    __u32 fault = fault_at(ctx->address, got), which = fault >> CLASS_BITS;
    if (which < HFAULTS_MARKS && wanted())
        settle(ctx, fault & ((1u << CLASS_BITS) - 1), which, false, began_ns);
    return 0;
}

SEC("perf_event") int perf_minor(struct perf_context *ctx)
{
    return ends(ctx);
}

SEC("perf_event") int perf_major(struct perf_context *ctx)
{
    return ends(ctx);
}

/* A fault that finds no page of hugetlbfs ends with a signal. */
static __always_inline int signalled(void *ctx, int signal)
{
    struct hfaults_open *o = open_now();
    if (signal != KERNEL_SIGBUS || !o || o->flags & HFAULTS_OF_KERNEL)
        return 0;
    if (is_hugetlb(o->address) && wanted())
        settle(ctx, MAPPING_HUGETLB, HFAULTS_HUGETLB_FAILED, false, o->began_ns);
    o->flags = 0;
    return 0;
}

SEC("raw_tp/signal_generate") int BPF_PROG(raw_signal, int signal, void *info, const void *task)
{
    return task == (const void *)bpf_get_current_task() ? signalled(ctx, signal) : 0;
}

SEC("tp/signal/signal_generate") int tp_signal(struct trace_event_raw_signal_generate *ctx)
{
    return ctx->pid == (int)bpf_get_current_pid_tgid() ? signalled(ctx, ctx->sig) : 0;
}

/* ---- khugepaged ---- */

/* khugepaged, or MADV_COLLAPSE, has looked at a range; all that it then did has been done. */
static __always_inline int scanned(void *ctx, const struct mm_struct *mm, __u32 class, __u32 result)
{
    const struct task_struct *owner = owner_of(mm);
    const __u32 success = bpf_core_enum_value(enum scan_result, SCAN_SUCCEED);
    struct hfaults_value *v = wanted_of(owner) ? row_of(NULL, owner, class, result + 1) : NULL;
    if (!v)
        return 0;
    mark(v, HFAULTS_SCANNED);
    if (result == success)
        mark(v, HFAULTS_COLLAPSED);
    else if (result <= HFAULTS_RESULTS_MAX)
        v->results |= 1ull << result;
    row_done(v);
    return 0;
}

SEC("raw_tp/mm_khugepaged_scan_pmd")
int BPF_PROG(raw_scan_pmd, const struct mm_struct *mm, __u64 page, __u64 second, __u64 third, __u64 fourth,
             __u64 fifth)
{
    return scanned(ctx, mm, MAPPING_ANONYMOUS, (__u32)(status_at == 5 ? fifth : fourth));
}

SEC("raw_tp/mm_khugepaged_scan_file")
int BPF_PROG(raw_scan_file, const struct mm_struct *mm, __u64 page, __u64 file, __u64 present, __u64 swap,
             int result)
{
    return scanned(ctx, mm, MAPPING_FILE, (__u32)result);
}

SEC("tp/huge_memory/mm_khugepaged_scan_pmd")
int tp_scan_pmd(struct trace_event_raw_mm_khugepaged_scan_pmd *ctx)
{
    return scanned(ctx, ctx->mm, MAPPING_ANONYMOUS, (__u32)ctx->status);
}

SEC("tp/huge_memory/mm_khugepaged_scan_file")
int tp_scan_file(struct trace_event_raw_mm_khugepaged_scan_file *ctx)
{
    return scanned(ctx, ctx->mm, MAPPING_FILE, (__u32)ctx->result);
}

/* ---- the kernel's functions ---- */

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
