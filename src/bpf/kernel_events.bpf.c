// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* `allium trace --kernel`: events of the traced processes. */
#include "bpf/sys.bpf.h"

#include "bpf/kernel_events.h"

#include "bpf/traced.bpf.h"

#include "bpf/fault_class.bpf.h"
#include "bpf/mm.bpf.h"
#include "bpf/task.bpf.h"

/* Set before loading: the address of the kernel's variable; 0: it has none, and the table of pages lies where it always
 * does. */
const volatile __u64 vmemmap_base_at = 0;
#define VMEMMAP_FIXED 0xffffea0000000000ull

/* ---- which processes are traced ---- */

/* Sets or clears the bit of each new process: an earlier process with the same number may have left it set. */
SEC("raw_tp/sched_process_fork")
int BPF_PROG(follow_fork, struct task_struct *parent, struct task_struct *child)
{
    const __u32 from = bpf_get_current_pid_tgid() >> 32, tgid = BPF_CORE_READ(child, tgid);
    const bool is_thread = BPF_CORE_READ(child, pid) != (int)tgid;
    bool follows = is_traced(from);
    if (!follows && !is_thread && awaits_first && current_ids() >> 32 == config.own_tgid) {
        follows = __sync_val_compare_and_swap(&awaits_first, 1, 0) == 1;
        cpu_offsets_find();
    }
    if (follows && !is_thread)
        __sync_fetch_and_or(traced_word(tgid), traced_bit(tgid));
    else if (!is_thread && is_traced(tgid))
        __sync_fetch_and_and(traced_word(tgid), ~traced_bit(tgid));
    return 0;
}

/* ---- faults ---- */

static __always_inline int fault_begins(__s32 mode, __u64 address, struct pt_regs *regs, __u64 error_code)
{
    struct process_mapping is = {0};
    const struct task_struct *task = bpf_get_current_task_btf();
    const __u64 self = bpf_get_current_pid_tgid();
    if (!wants(self) || (__s64)address < 0 || (mode && task->pagefault_disabled) || !task->mm)
        return 0;
    classify(&is, address);
    BEGIN(page_fault_begin);
    e->mode = mode;
    e->address = address;
    e->ip = BPF_CORE_READ(regs, ip);
    e->access = error_code & X86_FAULT_FETCH ? 2 : error_code & X86_FAULT_WRITE ? 1 : 0;
    e->class = is.class;
    END();
    return 0;
}

SEC("tp_btf/page_fault_user")
int BPF_PROG(fault_begins_user, __u64 address, struct pt_regs *regs, __u64 error_code)
{
    return fault_begins(0, address, regs, error_code);
}

SEC("tp_btf/page_fault_kernel")
int BPF_PROG(fault_begins_kernel, __u64 address, struct pt_regs *regs, __u64 error_code)
{
    return fault_begins(1, address, regs, error_code);
}

static __always_inline int fault_ends(struct perf_context *ctx, __s32 kind)
{
    const __u64 self = bpf_get_current_pid_tgid();
    if (!wants(self))
        return 0;
    BEGIN(page_fault_end);
    e->kind = kind;
    e->address = ctx->address;
    e->mode = !(ctx->cs & 3);
    END();
    return 0;
}

SEC("perf_event") int fault_ends_minor(struct perf_context *ctx)
{
    return fault_ends(ctx, 0);
}

SEC("perf_event") int fault_ends_major(struct perf_context *ctx)
{
    return fault_ends(ctx, 1);
}

/* ---- sched ---- */

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next, unsigned int state)
{
    const __u32 to = BPF_CORE_READ(next, tgid);
    const __u64 self = bpf_get_current_pid_tgid();
    if (!runs() || (!is_traced(self >> 32) && !is_traced(to)))
        return 0;
    BEGIN(sched_switch);
    e->state = preempt ? 0 : reported_state(prev, state);
    e->prio = prio_of(prev);
    e->next_prio = prio_of(next);
    e->next_pid = process_of(next);
    e->next_tid = config.pid_namespace ? number_in_namespace(BPF_CORE_READ(next, thread_pid))
                                       : (__u32)BPF_CORE_READ(next, pid);
    comm_now(e->comm);
    bpf_probe_read_kernel_str(e->next_comm, sizeof(e->next_comm), next->comm);
    END();
    return 0;
}

SEC("tp_btf/sched_wakeup") int BPF_PROG(on_wakeup, struct task_struct *p)
{
    const __u64 self = bpf_get_current_pid_tgid();
    if (!runs() || !is_traced(BPF_CORE_READ(p, tgid)))
        return 0;
    BEGIN(sched_wakeup);
    e->woken_pid = process_of(p);
    e->woken_tid = config.pid_namespace ? number_in_namespace(BPF_CORE_READ(p, thread_pid))
                                        : (__u32)BPF_CORE_READ(p, pid);
    e->target_cpu = cpu_of(p);
    e->woken_prio = prio_of(p);
    bpf_probe_read_kernel_str(e->woken_comm, sizeof(e->woken_comm), p->comm);
    END();
    return 0;
}

SEC("raw_tp/sched_process_fork") int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
    const __u64 self = bpf_get_current_pid_tgid();
    if (!wants(self) || BPF_CORE_READ(child, pid) != BPF_CORE_READ(child, tgid))
        return 0;
    BEGIN(process_fork);
    e->child_pid = process_of(child);
    END();
    return 0;
}

SEC("raw_tp/sched_process_exec") int BPF_PROG(on_exec, struct task_struct *task)
{
    const __u64 self = bpf_get_current_pid_tgid();
    if (!wants(self))
        return 0;
    BEGIN(process_exec);
    comm_now(e->comm);
    END();
    return 0;
}

SEC("raw_tp/sched_process_exit") int BPF_PROG(on_exit, struct task_struct *task)
{
    const __u64 self = bpf_get_current_pid_tgid();
    if (!wants(self))
        return 0;
    BEGIN(thread_exit);
    e->prio = prio_of(task);
    comm_now(e->comm);
    END();
    return 0;
}

/* ---- kmem ---- */

SEC("raw_tp/kmalloc")
int BPF_PROG(on_kmalloc, __u64 call_site, __u64 ptr, __u64 bytes_req, __u64 bytes_alloc, __u32 gfp)
{
    const __u64 self = bpf_get_current_pid_tgid();
    if (!wants(self))
        return 0;
    BEGIN(kmalloc);
    e->gfp = gfp;
    e->ptr = ptr;
    e->call_site = call_site;
    e->requested = bytes_req;
    e->allocated = bytes_alloc;
    END();
    return 0;
}

SEC("raw_tp/kfree") int BPF_PROG(on_kfree, __u64 call_site, __u64 ptr)
{
    const __u64 self = bpf_get_current_pid_tgid();
    if (!wants(self))
        return 0;
    BEGIN(kfree);
    e->ptr = ptr;
    e->call_site = call_site;
    END();
    return 0;
}

SEC("raw_tp/kmem_cache_alloc")
int BPF_PROG(on_cache_alloc, __u64 call_site, __u64 ptr, struct kmem_cache *s, __u32 gfp)
{
    const __u64 self = bpf_get_current_pid_tgid();
    if (!wants(self))
        return 0;
    BEGIN(cache_alloc);
    e->gfp = gfp;
    e->ptr = ptr;
    e->call_site = call_site;
    e->requested = BPF_CORE_READ(s, object_size);
    e->allocated = BPF_CORE_READ(s, size);
    bpf_probe_read_kernel_str(e->cache, sizeof(e->cache), BPF_CORE_READ(s, name));
    END();
    return 0;
}

SEC("raw_tp/kmem_cache_free") int BPF_PROG(on_cache_free, __u64 call_site, __u64 ptr, struct kmem_cache *s)
{
    const __u64 self = bpf_get_current_pid_tgid();
    if (!wants(self))
        return 0;
    BEGIN(cache_free);
    e->ptr = ptr;
    e->call_site = call_site;
    bpf_probe_read_kernel_str(e->cache, sizeof(e->cache), BPF_CORE_READ(s, name));
    END();
    return 0;
}

/* ---- pages ---- */

static __always_inline __u64 frame_of(const struct page *page)
{
    __u64 table = VMEMMAP_FIXED;
    if (vmemmap_base_at)
        bpf_probe_read_kernel(&table, sizeof(table), (const void *)vmemmap_base_at);
    return page ? ((__u64)page - table) / bpf_core_type_size(struct page) : ~0ull;
}

SEC("raw_tp/mm_page_alloc")
int BPF_PROG(on_page_alloc, struct page *page, __u32 order, __u32 gfp, __u32 migratetype)
{
    const __u64 self = bpf_get_current_pid_tgid();
    if (!wants(self))
        return 0;
    BEGIN(page_alloc);
    e->order = order;
    e->pfn = frame_of(page);
    e->gfp = gfp;
    e->migratetype = migratetype;
    END();
    return 0;
}

SEC("raw_tp/mm_page_free") int BPF_PROG(on_page_free, struct page *page, __u32 order)
{
    const __u64 self = bpf_get_current_pid_tgid();
    if (!wants(self))
        return 0;
    BEGIN(page_free);
    e->order = order;
    e->pfn = frame_of(page);
    END();
    return 0;
}

/* ---- maps ---- */

#define CALL_NUMBER(number, name) CALL_##name = number,
enum map_call { KERNEL_LABELS_map_call(CALL_NUMBER) };
#define IS_CALL(number, name) || nr == number

static __always_inline bool is_map_call(__u64 nr)
{
    return false KERNEL_LABELS_map_call(IS_CALL);
}

/* Returns the current thread, as bpf_get_current_pid_tgid() does, if its call is wanted; else 0. The numbers of calls
 * are those of 64-bit programs. */
static __always_inline __u64 wants_call(__u64 nr)
{
    if (!is_map_call(nr))
        return 0;
    const struct task_struct *task = bpf_get_current_task_btf();
    const __u64 self = (__u64)(__u32)task->tgid << 32 | (__u32)task->pid;
    return wants(self) && !(task->thread_info.status & X86_TS_COMPAT) ? self : 0;
}

SEC("tp_btf/sys_enter") int BPF_PROG(call_begins, struct pt_regs *regs, __s64 id)
{
    const __u64 self = wants_call(id);
    if (!self)
        return 0;
    BEGIN(map_begin);
    e->call = (__s32)id;
    END();
    return 0;
}

/* The registers still hold the arguments. */
static __always_inline int emit_mmap(const struct pt_regs *regs, __s64 result, __u64 self)
{
    BEGIN(mmap);
    e->prot = (__u32)regs->dx;
    e->address = regs->di;
    e->length = regs->si;
    e->flags = (__u32)regs->r10;
    e->fd = (__s32)regs->r8;
    e->offset = regs->r9;
    e->result = result;
    END();
    return 0;
}

static __always_inline int emit_mremap(const struct pt_regs *regs, __s64 result, __u64 self)
{
    BEGIN(mremap);
    e->flags = (__u32)regs->r10;
    e->address = regs->di;
    e->old_length = regs->si;
    e->length = regs->dx;
    e->wanted = regs->r8;
    e->result = result;
    END();
    return 0;
}

static __always_inline int emit_brk(const struct pt_regs *regs, __s64 result, __u64 self)
{
    BEGIN(brk);
    e->asked = regs->di;
    e->result = (__u64)result;
    END();
    return 0;
}

#define EMIT_RANGE(name, third)                                                                              \
    static __always_inline int emit_##name(const struct pt_regs *regs, __s64 result, __u64 self)             \
    {                                                                                                        \
        BEGIN(name);                                                                                         \
        e->address = regs->di;                                                                               \
        e->length = regs->si;                                                                                \
        third;                                                                                               \
        e->result = result;                                                                                  \
        END();                                                                                               \
        return 0;                                                                                            \
    }
EMIT_RANGE(munmap, )
EMIT_RANGE(madvise, e->advice = (__u32)regs->dx)
EMIT_RANGE(mprotect, e->prot = (__u32)regs->dx)

SEC("tp_btf/sys_exit") int BPF_PROG(call_ends, struct pt_regs *regs, __s64 result)
{
    const __u64 nr = regs->orig_ax, self = wants_call(nr);
    if (!self)
        return 0;
    return nr == CALL_brk       ? emit_brk(regs, result, self)
           : nr == CALL_mmap    ? emit_mmap(regs, result, self)
           : nr == CALL_munmap  ? emit_munmap(regs, result, self)
           : nr == CALL_mremap  ? emit_mremap(regs, result, self)
           : nr == CALL_madvise ? emit_madvise(regs, result, self)
                                : emit_mprotect(regs, result, self);
}

/* ---- rss ---- */

SEC("raw_tp/rss_stat") int BPF_PROG(on_rss, struct mm_struct *mm, int member)
{
    const struct task_struct *task = bpf_get_current_task_btf();
    const __u64 self = bpf_get_current_pid_tgid();
    if (!wants(self) || member < 0 || member >= NR_MM_COUNTERS)
        return 0;
    BEGIN(rss);
    e->kind = member;
    e->bytes = mm_exact(mm, (__u32)member) * PAGE;
    e->own = mm == task->mm;
    END();
    return 0;
}

/* ---- reclaim ---- */

static __always_inline int reclaim_begins(__s32 kind, __u32 order, __u32 gfp)
{
    const __u64 self = bpf_get_current_pid_tgid();
    if (!wants(self))
        return 0;
    BEGIN(reclaim_begin);
    e->kind = kind;
    e->order = order;
    e->gfp = gfp;
    END();
    return 0;
}

static __always_inline int reclaim_ends(__s32 kind, __u64 pages)
{
    const __u64 self = bpf_get_current_pid_tgid();
    if (!wants(self))
        return 0;
    BEGIN(reclaim_end);
    e->kind = kind;
    e->pages = pages;
    END();
    return 0;
}

#define RECLAIM(way, tracepoint, kind)                                                                       \
    SEC("raw_tp/" #tracepoint "_begin") int BPF_PROG(way##_begins, __u32 order, __u32 gfp_flags)             \
    {                                                                                                        \
        return reclaim_begins(kind, order, gfp_flags);                                                       \
    }                                                                                                        \
    SEC("raw_tp/" #tracepoint "_end") int BPF_PROG(way##_ends, __u64 nr_reclaimed)                           \
    {                                                                                                        \
        return reclaim_ends(kind, nr_reclaimed);                                                             \
    }
RECLAIM(direct, mm_vmscan_direct_reclaim, 0)
RECLAIM(cgroup, mm_vmscan_memcg_reclaim, 1)

/* ---- oom ---- */

SEC("raw_tp/mark_victim") int BPF_PROG(on_victim, struct task_struct *task)
{
    const __u64 self = bpf_get_current_pid_tgid();
    if (!runs() || (!is_traced(self >> 32) && !is_traced(BPF_CORE_READ(task, tgid))))
        return 0;
    BEGIN(oom_victim);
    e->victim_pid = process_of(task);
    bpf_probe_read_kernel_str(e->victim_comm, sizeof(e->victim_comm), task->comm);
    END();
    return 0;
}

/* Before Linux 6.10 the tracepoint has only the number of a thread. */
SEC("raw_tp/mark_victim") int BPF_PROG(on_victim_number, int pid)
{
    const __u64 self = bpf_get_current_pid_tgid();
    if (!runs() || (!is_traced(self >> 32) && !is_traced(pid)))
        return 0;
    BEGIN(oom_victim);
    e->victim_pid = pid;
    END();
    return 0;
}

#include "bpf/probe.bpf.h"
