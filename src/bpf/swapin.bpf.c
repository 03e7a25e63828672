// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* `allium sys swapin`: pages that are read from swap, and the page faults that wait for them. */
#include "bpf/sys.bpf.h"

#include "bpf/swap.bpf.h"
#include "bpf/swapin.h"

SYS_TABLE(struct swapin_key, struct swapin_value)

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, SWAPIN_THREADS);
    __uint(key_size, sizeof(__u32));
    __uint(value_size, sizeof(struct swapin_thread));
} threads SEC(".maps");

static __always_inline struct swapin_thread *slot_now(void)
{
    __u32 slot = (__u32)bpf_get_current_pid_tgid() % SWAPIN_THREADS;
    return bpf_map_lookup_elem(&threads, &slot);
}

static __always_inline __u32 tid_now(void)
{
    return (__u32)bpf_get_current_pid_tgid();
}

/* ---- rows ---- */

static __always_inline struct swapin_value *row_of(__s32 area)
{
    struct row_key row = {0};
    if (config.parts & SWAPIN_BY_PROCESS)
        row.key.pid = current_ids() >> 32;
    if (config.parts & (SWAPIN_BY_PROCESS | SWAPIN_BY_COMM))
        comm_now(row.key.comm);
    if (config.parts & SWAPIN_BY_DEVICE) {
        const struct inode *inode = BPF_CORE_READ(area_info(area), swap_file, f_inode);
        row.key.file.inode = BPF_CORE_READ(inode, i_ino);
        row.key.file.device = BPF_CORE_READ(inode, i_sb, s_dev);
    }
    if (config.parts & SWAPIN_BY_CGROUP)
        row.key.cgroup = cgroup_now();
    return row_at(&row);
}

static __attribute__((noinline)) void add_pages(__s32 area, __u32 source, __u64 pages, bool in_fault)
{
    struct swapin_value *v = row_of(area);
    if (!v)
        return;
    if (source < SWAPIN_SOURCES)
        v->pages[source] += pages;
    if (!in_fault)
        v->no_fault += pages;
    row_done(v);
}

/* Pages that a method which sees no begin of a read has counted in a fault, and that were read in none. */
static __attribute__((noinline)) void add_no_fault(__u64 pages)
{
    struct swapin_value *v = row_of(-1);
    if (!v)
        return;
    v->no_fault += pages;
    row_done(v);
}

static __always_inline void add_delay(struct swapin_value *v, const struct swapin_thread *t)
{
    const struct task_struct *task = (const void *)bpf_get_current_task();
    const struct task_delay_info *delays = BPF_CORE_READ(task, delays);
    if (!t->has_delays || !delays)
        return;
    v->delays += BPF_CORE_READ(delays, swapin_count) - t->delays;
    v->delay_ns += BPF_CORE_READ(delays, swapin_delay) - t->delay_ns;
}

/* A fault for a page of swap has ended, now or (`now_ns` is 0) at a time that is not known. */
static __attribute__((noinline)) void add_fault(const struct swapin_thread *t, __s32 area, bool cached,
                                                __u64 now_ns)
{
    struct swapin_value *v = t ? row_of(area) : NULL;
    if (!v)
        return;
    v->faults++;
    v->cached += cached;
    v->read_ahead += t->pages ? t->pages - 1 : 0;
    add_delay(v, t);
    if (t->began_ns && now_ns) {
        __u64 ns = now_ns - t->began_ns;
        v->timed++;
        v->duration_ns += ns;
        v->longest_ns = ns > v->longest_ns ? ns : v->longest_ns;
        row_measure(v, ns);
    }
    row_done(v);
}

static __always_inline void delays_begin(struct swapin_thread *t)
{
    const struct task_struct *task = (const void *)bpf_get_current_task();
    const struct task_delay_info *delays = BPF_CORE_READ(task, delays);
    t->has_delays = delays != NULL;
    if (!delays)
        return;
    t->delays = BPF_CORE_READ(delays, swapin_count);
    t->delay_ns = BPF_CORE_READ(delays, swapin_delay);
}

static __always_inline void thread_begin(struct swapin_thread *t, __u64 address)
{
    __builtin_memset(t, 0, sizeof(*t));
    t->tid = tid_now();
    t->address = address;
    t->area = -1;
    t->member = -1;
}

/* The current thread's entry; if it has none, one in which nothing has begun. */
static __always_inline struct swapin_thread *thread_now(void)
{
    struct swapin_thread *t = slot_now();
    if (t && t->tid != tid_now()) {
        if (t->in_fault || t->pages || t->major)
            count(SWAPIN_REPLACED);
        thread_begin(t, 0);
    }
    return t;
}

/* ---- functions of the kernel: what they are called for, and how long they take ---- */

/* The folio that was being read has been read. */
static __always_inline void read_settle(struct swapin_thread *t)
{
    __u32 pages = t->reading;
    t->reading = 0;
    if (!pages || !wanted())
        return;
    if (t->in_fault)
        t->pages += pages;
    add_pages(t->entry >> ENTRY_AREA_SHIFT, t->source, pages, t->in_fault);
}

static __always_inline __s32 area_of(const struct swapin_thread *t)
{
    return t->pages ? (__s32)(t->entry >> ENTRY_AREA_SHIFT) : t->area;
}

static __always_inline void fault_account(struct swapin_thread *t, __u64 now_ns)
{
    __s32 area = area_of(t);
    if (area >= 0 && area < AREAS_MAX && wanted())
        add_fault(t, area, !t->pages, now_ns);
}

static __always_inline int fault_begins(const struct vm_fault *vmf, bool is_shared)
{
    struct swapin_thread *t = runs() ? thread_now() : NULL; /* the end may not be attached yet */
    __u64 address = BPF_CORE_READ(vmf, address);
    if (!t)
        return 0;
    read_settle(t);
    if (t->in_fault) {
        count(SWAPIN_END_MISSED);
        fault_account(t, 0);
    } else if (t->retried && t->address == address) {
        t->in_fault = 1;
        return 0;
    }
    thread_begin(t, address);
    t->in_fault = 1;
    t->is_shared = is_shared;
    if (!is_shared)
        t->area = (__s32)(BPF_CORE_READ(vmf, orig_pte.pte) >> PTE_AREA_SHIFT);
    delays_begin(t);
    t->began_ns = bpf_ktime_get_ns();
    return 0;
}

#define VALUE(name) bpf_core_enum_value(enum vm_fault_reason, name)
static __always_inline int fault_ends(__u32 result)
{
    const __u32 failed = VALUE(VM_FAULT_OOM) | VALUE(VM_FAULT_SIGBUS) | VALUE(VM_FAULT_HWPOISON) |
                         VALUE(VM_FAULT_HWPOISON_LARGE) | VALUE(VM_FAULT_SIGSEGV);
    __u64 now_ns = bpf_ktime_get_ns();
    struct swapin_thread *t = slot_now();
    if (!t || t->tid != tid_now() || !t->in_fault) {
        if (runs())
            count(SWAPIN_BEGUN_BEFORE);
        return 0;
    }
    read_settle(t);
    t->in_fault = 0;
    t->retried = (result & VALUE(VM_FAULT_RETRY)) != 0;
    if (t->retried)
        return 0;
    if (!(result & failed))
        fault_account(t, now_ns);
    else if (t->pages && wanted())
        add_no_fault(t->pages);
    return 0;
}

static __always_inline int read_begins(const struct page *page)
{
    struct swapin_thread *t = thread_now();
    if (!t)
        return 0;
    read_settle(t);
    t->folio = (__u64)page;
    t->entry = BPF_CORE_READ(page, private);
    const struct swap_info_struct *info = area_info((__s32)(t->entry >> ENTRY_AREA_SHIFT));
    t->source = is_zero(info, t->entry & ((1ull << ENTRY_AREA_SHIFT) - 1)) ? SWAPIN_ZERO
                : is_zram(info)                                            ? SWAPIN_ZRAM
                                                                           : SWAPIN_DEVICE;
    t->reading = pages_of((__u64)page);
    return 0;
}

static __always_inline int read_ends(void)
{
    struct swapin_thread *t = slot_now();
    if (t && t->tid == tid_now())
        read_settle(t);
    return 0;
}

/* It returns whether it had the page in ways that differ between kernels; the page's flag does not. */
static __always_inline int zswap_ends(void)
{
    struct swapin_thread *t = slot_now();
    if (t && t->tid == tid_now() && t->reading &&
        has_flag(t->folio, bpf_core_enum_value(enum pageflags___uptodate, PG_uptodate)))
        t->source = SWAPIN_ZSWAP;
    return 0;
}

/* Before 6.6: 0 if it had the page, which is marked by the caller. */
static __always_inline int zswap_frontswap_ends(__u32 result)
{
    struct swapin_thread *t = slot_now();
    if (!result && t && t->tid == tid_now() && t->reading)
        t->source = SWAPIN_ZSWAP;
    return 0;
}

/* A function, by both methods: its begin, with the first argument, and its end, with the result. */
#define BEGINS(name, function, type, call)                                                                   \
    SEC("fentry/" function) int BPF_PROG(fentry_##name, const type *arg)                                     \
    {                                                                                                        \
        return call;                                                                                         \
    }                                                                                                        \
    SEC("kprobe/" function) int BPF_KPROBE(kprobe_##name, const type *arg)                                   \
    {                                                                                                        \
        return call;                                                                                         \
    }
/* `before`: all its arguments, which a program at the end gets before the result. */
#define ENDS(name, function, before, call)                                                                   \
    SEC("fexit/" function) int BPF_PROG(fexit_##name, before, unsigned int result)                           \
    {                                                                                                        \
        return call;                                                                                         \
    }                                                                                                        \
    SEC("kretprobe/" function) int BPF_KRETPROBE(kretprobe_##name, unsigned int result)                      \
    {                                                                                                        \
        return call;                                                                                         \
    }
#define ENDS_ANYHOW(name, function, call)                                                                    \
    SEC("fexit/" function) int BPF_PROG(fexit_##name)                                                        \
    {                                                                                                        \
        return call;                                                                                         \
    }                                                                                                        \
    SEC("kretprobe/" function) int BPF_KRETPROBE(kretprobe_##name)                                           \
    {                                                                                                        \
        return call;                                                                                         \
    }
#define FRONTSWAP_ARGUMENTS unsigned int type, unsigned long offset, void *page

BEGINS(fault, "do_swap_page", struct vm_fault, fault_begins(arg, false))
ENDS(fault, "do_swap_page", void *vmf, fault_ends(result))
BEGINS(shared, "shmem_fault", struct vm_fault, fault_begins(arg, true))
ENDS(shared, "shmem_fault", void *vmf, fault_ends(result))
BEGINS(read, "swap_read_folio", struct page, read_begins(arg))
ENDS_ANYHOW(read, "swap_read_folio", read_ends())
BEGINS(readpage, "swap_readpage", struct page, read_begins(arg))
ENDS_ANYHOW(readpage, "swap_readpage", read_ends())
ENDS_ANYHOW(zswap, "zswap_load", zswap_ends())
ENDS(frontswap, "zswap_frontswap_load", FRONTSWAP_ARGUMENTS, zswap_frontswap_ends(result))

/* ---- tracepoints: a fault for a page of swap is told by what it does ---- */

static __always_inline void rss_begin(struct swapin_thread *t)
{
    const struct task_struct___before_6_2 *task = (const void *)bpf_get_current_task();
    if (!bpf_core_field_exists(task->rss_stat))
        return;
    t->rss_events = BPF_CORE_READ(task, rss_stat.events);
    t->rss_swapped = BPF_CORE_READ(task, rss_stat.count[MM_SWAPENTS]);
    t->rss_shared = BPF_CORE_READ(task, rss_stat.count[MM_SHMEMPAGES]);
}

/*
 * Before 6.2 a thread counts by itself, and adds to its process's counters after some 64 changes: only then there is an
 * event. It does so when a fault begins, and then has fewer changes than before.
 */
static __always_inline void rss_end(struct swapin_thread *t)
{
    const struct task_struct___before_6_2 *task = (const void *)bpf_get_current_task();
    if (!bpf_core_field_exists(task->rss_stat))
        return;
    bool anew = BPF_CORE_READ(task, rss_stat.events) < t->rss_events;
    t->member = -1;
    if (BPF_CORE_READ(task, rss_stat.count[MM_SWAPENTS]) < (anew ? 0 : t->rss_swapped))
        t->member = MM_SWAPENTS;
    else if (BPF_CORE_READ(task, rss_stat.count[MM_SHMEMPAGES]) > (anew ? 0 : t->rss_shared))
        t->member = MM_SHMEMPAGES;
}

static __always_inline int fault_raised(void)
{
    if (!runs())
        return 0;
    struct swapin_thread *t = thread_now();
    if (!t)
        return 0;
    if (t->pages && wanted())
        add_no_fault(t->pages);
    thread_begin(t, 0);
    rss_begin(t);
    delays_begin(t);
    t->began_ns = bpf_ktime_get_ns();
    return 0;
}

SEC("raw_tp/page_fault_user") int raised_user(void *ctx)
{
    return fault_raised();
}

/* Code that may not wait, such as a BPF program that reads a stack, raises exceptions that are no page faults. */
SEC("raw_tp/page_fault_kernel") int raised_kernel(void *ctx)
{
    const struct task_struct *task = (const void *)bpf_get_current_task();
    return BPF_CORE_READ(task, pagefault_disabled) ? 0 : fault_raised();
}

/*
 * A fault has ended. The last thing that one for a page of swap does to the counters of resident memory is to count an
 * entry of swap less; or, for shared memory, a page more, after a read. Reclaim within a fault counts entries, too, but
 * comes before.
 */
static __always_inline int handled(struct swapin_thread *t, bool sees_reads)
{
    __u64 now_ns = bpf_ktime_get_ns();
    bool swap = t->member == MM_SWAPENTS, shared = t->member == MM_SHMEMPAGES;
    bool has_read = t->major && (t->pages || swap || shared);
    if (!(has_read || swap || t->pages) || !wanted()) {
        thread_begin(t, 0);
        return 0;
    }
    if (has_read || swap) {
        if (sees_reads && has_read && !t->pages)
            add_pages(-1, SWAPIN_UNKNOWN, 1, true);
        if (t->pages && !has_read)
            add_no_fault(t->pages);
        add_fault(t, -1, !has_read, now_ns);
    } else {
        add_no_fault(t->pages);
    }
    thread_begin(t, 0);
    return 0;
}

static __always_inline void has_read(__u32 source, __u64 pages)
{
    struct swapin_thread *t = thread_now();
    if (!t || !wanted())
        return;
    t->pages += pages;
    add_pages(-1, source, pages, true);
}

#define EVENT(name) bpf_core_enum_value(enum vm_event_item, name)
static __always_inline int memcg_event(__u32 item, __u64 value)
{
    if (!runs())
        return 0;
    if (item == EVENT(PGFAULT)) {
        struct swapin_thread *t = slot_now();
        return t && t->tid == tid_now() ? handled(t, true) : 0;
    }
    if (item == EVENT(PGMAJFAULT)) {
        struct swapin_thread *t = thread_now();
        if (t)
            t->major = 1;
    } else if (item == EVENT(PSWPIN)) {
        has_read(SWAPIN_BLOCK, value);
    } else if (bpf_core_enum_value_exists(enum vm_event_item, ZSWPIN) && item == EVENT(ZSWPIN)) {
        has_read(SWAPIN_ZSWAP, value);
    } else if (bpf_core_enum_value_exists(enum vm_event_item, SWPIN_ZERO) && item == EVENT(SWPIN_ZERO)) {
        has_read(SWAPIN_ZERO, value);
    }
    return 0;
}

static __always_inline int rss_changed(const struct mm_struct *mm, int member)
{
    const struct task_struct *task = (const void *)bpf_get_current_task();
    if (!runs() || BPF_CORE_READ(task, mm) != mm)
        return 0;
    struct swapin_thread *t = thread_now();
    if (t)
        t->member = (__s8)member;
    return 0;
}

SEC("tp_btf/count_memcg_events") int BPF_PROG(btf_event, void *memcg, int item, unsigned long value)
{
    return memcg_event(item, value);
}

SEC("raw_tp/count_memcg_events") int BPF_PROG(raw_event, void *memcg, int item, unsigned long value)
{
    return memcg_event(item, value);
}

SEC("tp_btf/rss_stat") int BPF_PROG(btf_rss, const struct mm_struct *mm, int member)
{
    return rss_changed(mm, member);
}

SEC("raw_tp/rss_stat") int BPF_PROG(raw_rss, const struct mm_struct *mm, int member)
{
    return rss_changed(mm, member);
}

static __always_inline int perf_ended(bool major)
{
    struct swapin_thread *t = slot_now();
    if (!runs() || !t || t->tid != tid_now())
        return 0;
    t->major = major;
    rss_end(t);
    return handled(t, false);
}

SEC("perf_event") int perf_minor(void *ctx)
{
    return perf_ended(false);
}

SEC("perf_event") int perf_major(void *ctx)
{
    return perf_ended(true);
}
