// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* `allium sys hfaults`: faults that ask for huge pages, and what becomes of the huge pages. */
#include "bpf/sys.bpf.h"

#include "bpf/hfaults.h"
#include "bpf/kernel_huge.h"

#define FAULT_FILES_WANTED false
#include "bpf/fault_class.bpf.h"
#include "bpf/hfaults_row.bpf.h"

/* The order of a transparent huge page: 9 on x86. */
const volatile __u32 huge_order = 9;
/* The position of the result among the arguments of mm_khugepaged_scan_pmd: before 6.13 another one precedes it. */
const volatile __u32 status_at = 4;
/* Set when a huge page was given back during its fault, which is rare: only then other pages are looked at. */
__u32 given_up = 0;

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, HFAULTS_THREADS);
    __uint(key_size, sizeof(__u32));
    __uint(value_size, sizeof(struct hfaults_open));
} open_faults SEC(".maps");

/* ---- mappings ---- */

static __always_inline __u32 mark_of_hugetlb(const struct vm_area_struct *vma)
{
    const __u64 bytes = BPF_CORE_READ(vma, vm_file, f_inode, i_sb, s_blocksize);
    return bytes == 2u << 20   ? HFAULTS_HUGETLB_2M
           : bytes == 1u << 30 ? HFAULTS_HUGETLB_1G
                               : HFAULTS_HUGETLB_OTHER;
}

static __always_inline __u32 class_of_vma(const struct vm_area_struct *vma)
{
    return class_of(vma, bpf_get_current_task_btf()->mm, BPF_CORE_READ(vma, vm_start),
                    BPF_CORE_READ(vma, vm_end));
}

/* ---- the fault that a thread has under way ---- */

static __always_inline struct hfaults_open *slot_now(__u32 *tid)
{
    *tid = (__u32)bpf_get_current_pid_tgid();
    __u32 slot = *tid % HFAULTS_THREADS;
    return bpf_map_lookup_elem(&open_faults, &slot);
}

static __always_inline struct hfaults_open *open_now(void)
{
    __u32 tid;
    struct hfaults_open *o = slot_now(&tid);
    return o && o->tid == tid && o->flags & HFAULTS_OPEN ? o : NULL;
}

static __always_inline struct hfaults_open *open_fault(__u64 vma, __u64 address, __u32 flags)
{
    __u32 tid;
    struct hfaults_open *o = slot_now(&tid);
    if (!o)
        return NULL;
    o->began_ns = config.histograms ? bpf_ktime_get_ns() : 0;
    o->address = address;
    o->page = 0;
    o->vma = vma;
    o->tid = tid;
    o->got = HFAULTS_PAGE_NONE;
    o->flags = HFAULTS_OPEN | flags;
    return o;
}

/* A fault has come to this end. */
static __attribute__((noinline)) int settle(void *ctx, const struct hfaults_open *o, __u32 class, __u32 which)
{
    struct hfaults_value *v = row_of(ctx, NULL, class, 0);
    if (!v)
        return 0;
    mark(v, which);
    if (o && o->flags & HFAULTS_NO_TOUCH)
        mark(v, HFAULTS_ASKED);
    if (o && o->began_ns)
        row_measure(v, bpf_ktime_get_ns() - o->began_ns);
    row_done(v);
    return 0;
}

/* What a fault outside of hugetlbfs came to; HFAULTS_MARKS: it has nothing to do with huge pages. */
static __always_inline __u32 mark_of_transparent(const struct hfaults_open *o)
{
    return o->got == HFAULTS_PAGE_GOT         ? HFAULTS_THP
           : o->got == HFAULTS_PAGE_REFUSED   ? HFAULTS_NO_PAGE
           : o->got == HFAULTS_PAGE_UNCHARGED ? HFAULTS_CHARGE
           : o->flags & HFAULTS_ZEROS         ? HFAULTS_ZERO
                                              : HFAULTS_MARKS;
}

/*
 * The page allocator, during a fault. A huge page that is given back at once could not be charged to the cgroup if
 * small pages are taken afterwards; if none are, another thread has mapped a page there meanwhile.
 */
static __always_inline int allocated(__u64 page, bool there, __u32 order, int type)
{
    if (LIKELY(order != huge_order && !given_up))
        return 0;
    struct hfaults_open *o = open_now();
    if (order != huge_order) {
        if (o && o->got == HFAULTS_PAGE_GIVEN_UP)
            o->got = HFAULTS_PAGE_UNCHARGED;
        return 0;
    }
    if (there &&
        type != (int)bpf_core_enum_value(enum migratetype, MIGRATE_MOVABLE)) /* for the page of zeros */
        return 0;
    if (o) {
        if (there)
            o->page = page;
        if (there || o->got != HFAULTS_PAGE_GOT)
            o->got = there ? HFAULTS_PAGE_GOT : HFAULTS_PAGE_REFUSED;
        return 0;
    }
    const struct task_struct *task = (const void *)bpf_get_current_task();
    if (there && !(BPF_CORE_READ(task, flags) & KERNEL_PF_KTHREAD) && wanted())
        count(HFAULTS_OUTSIDE);
    return 0;
}

static __always_inline int freed(__u64 page, __u32 order)
{
    if (LIKELY(order != huge_order))
        return 0;
    struct hfaults_open *o = open_now();
    if (o && o->got == HFAULTS_PAGE_GOT && o->page == page) {
        o->got = HFAULTS_PAGE_GIVEN_UP;
        given_up = 1;
    }
    return 0;
}

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

/* Returns the class, and sets *which if it is memory of hugetlbfs. */
static __attribute__((noinline)) __u32 class_at(__u64 address, __u32 *which)
{
    struct faults_file in = {0};
    classify(&in, address);
    if (in.class == FAULTS_HUGETLB)
        *which = mark_of_hugetlb((const void *)mapped_find(bpf_get_current_task_btf()->mm, address));
    return in.class;
}

static __always_inline bool is_hugetlb(__u64 address)
{
    __u32 which = HFAULTS_MARKS;
    return class_at(address, &which) == FAULTS_HUGETLB;
}

static __always_inline int settle_failed(void *ctx, const struct hfaults_open *o)
{
    return wanted() ? settle(ctx, o, FAULTS_HUGETLB, HFAULTS_HUGETLB_FAILED) : 0;
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
    if (UNLIKELY(o && o->flags & HFAULTS_IN_HUGETLB))
        settle_failed(ctx, o);
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
    __u64 address = ctx->address;
    struct hfaults_open *o = open_now();
    __u32 which = HFAULTS_MARKS, class = class_at(address, &which);
    if (which == HFAULTS_MARKS && o)
        which = mark_of_transparent(o);
    if (which < HFAULTS_MARKS && wanted())
        settle(ctx, o, class, which);
    if (o)
        o->flags = 0;
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
    if (is_hugetlb(o->address))
        settle_failed(ctx, o);
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

/* ---- begin and end of faults, by the kernel's functions ---- */

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
    __u32 which = mark_of_transparent(o);
    const struct vm_area_struct *vma = (const void *)o->vma;
    if (which < HFAULTS_MARKS && !(result & (FAILED | VALUE(VM_FAULT_RETRY))) &&
        !(BPF_CORE_READ(vma, vm_flags) & KERNEL_VM_HUGETLB) && wanted())
        settle(ctx, o, class_of_vma(vma), which);
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
    if (!(result & VALUE(VM_FAULT_RETRY)) && wanted())
        settle(ctx, o, FAULTS_HUGETLB, result & FAILED ? HFAULTS_HUGETLB_FAILED : mark_of_hugetlb(vma));
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
        wanted_of(owner) ? row_of(ctx, owner, vma ? class_of_vma(vma) : FAULTS_OTHER, 0) : NULL;
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

/* khugepaged, or MADV_COLLAPSE, has looked at a range; all that it then did has been done. */
static __always_inline int scanned(void *ctx, const struct mm_struct *mm, __u32 class, __u32 result)
{
    const struct task_struct *owner = owner_of(mm);
    const __u32 success = bpf_core_enum_value(enum scan_result, SCAN_SUCCEED);
    struct hfaults_value *v = wanted_of(owner) ? row_of(ctx, owner, class, result + 1) : NULL;
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
    return scanned(ctx, mm, FAULTS_ANONYMOUS, (__u32)(status_at == 5 ? fifth : fourth));
}

SEC("raw_tp/mm_khugepaged_scan_file")
int BPF_PROG(raw_scan_file, const struct mm_struct *mm, __u64 page, __u64 file, __u64 present, __u64 swap,
             int result)
{
    return scanned(ctx, mm, FAULTS_FILE, (__u32)result);
}

SEC("tp/huge_memory/mm_khugepaged_scan_pmd")
int tp_scan_pmd(struct trace_event_raw_mm_khugepaged_scan_pmd *ctx)
{
    return scanned(ctx, ctx->mm, FAULTS_ANONYMOUS, (__u32)ctx->status);
}

SEC("tp/huge_memory/mm_khugepaged_scan_file")
int tp_scan_file(struct trace_event_raw_mm_khugepaged_scan_file *ctx)
{
    return scanned(ctx, ctx->mm, FAULTS_FILE, (__u32)ctx->result);
}

#include "bpf/hfaults_functions.bpf.h"
