/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_HFAULTS_FAULT_BPF_H
#define BPF_HFAULTS_FAULT_BPF_H

/*
 * The fault that a thread has under way, from its begin to its end, and the huge page that it gets meanwhile.
 *
 * Runs in: the kernel. A part of hfaults.bpf.c.
 */

#include "bpf/sys.bpf.h"

#include "bpf/hfaults.h"
#include "bpf/kernel_huge.bpf.h"

#define FAULT_FILES_WANTED false
#define FAULT_SIZES_WANTED true
#include "bpf/fault_class.bpf.h"
#include "bpf/hfaults_row.bpf.h"

/* The order of a transparent huge page: 9 on x86. */
const volatile __u32 huge_order = 9;
/* Set when a huge page was given back during its fault, which is rare: only then other pages are looked at. */
__u32 given_up = 0;

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, HFAULTS_THREADS);
    __uint(key_size, sizeof(__u32));
    __uint(value_size, sizeof(struct hfaults_open));
} open_faults SEC(".maps");

static __always_inline __u32 mark_of_hugetlb(__u64 page_bytes)
{
    return page_bytes == 2u << 20   ? HFAULTS_HUGETLB_2M
           : page_bytes == 1u << 30 ? HFAULTS_HUGETLB_1G
                                    : HFAULTS_HUGETLB_OTHER;
}

static __always_inline __u32 class_of_vma(const struct vm_area_struct *vma)
{
    return mapping_class_of(vma, bpf_get_current_task_btf()->mm, BPF_CORE_READ(vma, vm_start),
                            BPF_CORE_READ(vma, vm_end));
}

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

/* A fault has come to this end. began_ns: 0 if it is not known. */
static __attribute__((noinline)) int settle(void *ctx, __u32 class, __u32 which, bool asked, __u64 began_ns)
{
    struct hfaults_value *v = row_of(ctx, NULL, class, 0);
    if (!v)
        return 0;
    mark(v, which);
    v->marked[HFAULTS_ASKED] += asked;
    if (config.histograms && began_ns)
        row_measure(v, bpf_ktime_get_ns() - began_ns);
    row_done(v);
    return 0;
}

/*
 * What a fault outside of hugetlbfs came to; HFAULTS_MARKS: it has nothing to do with huge pages. GLOBAL, so that the
 * verifier goes on once, and not from each way through it.
 */
GLOBAL __u32 mark_of_transparent(__u32 got, __u32 flags)
{
    return got == HFAULTS_PAGE_GOT         ? HFAULTS_THP
           : got == HFAULTS_PAGE_REFUSED   ? HFAULTS_NO_PAGE
           : got == HFAULTS_PAGE_UNCHARGED ? HFAULTS_CHARGE
           : flags & HFAULTS_ZEROS         ? HFAULTS_ZERO
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

#endif
