/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_OOMKILL_WALK_BPF_H
#define BPF_OOMKILL_WALK_BPF_H

/*
 * A walk over all processes, along the kernel's own list: finds the largest ones, and those that share the
 * victim's memory. Tracepoints and probes run inside an RCU read section, so all processes in the list stay
 * readable.
 */

#include "bpf/memcg.bpf.h"
#include "bpf/mm.bpf.h"
#include "bpf/oomkill.h"

#define WALK_MOST       (1u << 20)
#define WALK_MOST_UNTIL 4096u /* before 5.17, which has bpf_loop() */
#define WALK_THREADS    16u   /* threads to try, if the first thread of a process has ended */

struct walk {
    __u64 at, start; /* struct task_struct */
    __u64 mm;        /* of the victim */
    __u64 memcg_id;  /* 0: no cgroup is full */
    __u64 found;
    __u32 wanted_pid; /* 0: none is searched */
    __u32 processes, sharing;
    __u32 ended, cut, idle_seen;
    __u32 n_largest;
    struct oomkill_process largest[OOMKILL_LARGEST];
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __uint(key_size, sizeof(__u32));
    __uint(value_size, sizeof(struct walk));
} walks SEC(".maps");

/* Returns the address space of a process, also after its first thread has ended; NULL: none, as for kernel
 * threads. */
static __always_inline const struct mm_struct *memory_of(const struct task_struct *leader)
{
    const struct mm_struct *mm = BPF_CORE_READ(leader, mm);
    if (mm || BPF_CORE_READ(leader, flags) & KERNEL_PF_KTHREAD)
        return BPF_CORE_READ(leader, flags) & KERNEL_PF_KTHREAD ? NULL : mm;
    const struct signal_struct *signal = BPF_CORE_READ(leader, signal);
    const struct list_head *node = BPF_CORE_READ(signal, thread_head.next);
    const __u64 head = (__u64)signal + bpf_core_field_offset(struct signal_struct, thread_head);
    for (__u32 i = 0; signal && i < WALK_THREADS && node && (__u64)node != head && !mm; i++) {
        const struct task_struct *thread =
            (const void *)((__u64)node - bpf_core_field_offset(struct task_struct, thread_node));
        mm = BPF_CORE_READ(thread, mm);
        node = BPF_CORE_READ(node, next);
    }
    return mm;
}

static __always_inline __s64 resident(const struct oomkill_memory *m)
{
    return m->anon_pages + m->file_pages + m->shmem_pages;
}

GLOBAL bool is_in_memcg(__u64 task, __u64 memcg_id)
{
    const struct cgroup_subsys_state *css = memory_css((const void *)task);
    bool in = false;
    for (__u32 i = 0; memcg_id && i < 32 && css && !in; i++, css = BPF_CORE_READ(css, parent))
        in = BPF_CORE_READ(css, cgroup, kn, id) == memcg_id;
    return in;
}

static __always_inline void describe(struct oomkill_process *p, const struct task_struct *task,
                                     const struct mm_struct *mm, __u64 memcg_id)
{
    p->memory.anon_pages = mm_exact(mm, MM_ANONPAGES);
    p->memory.file_pages = mm_exact(mm, MM_FILEPAGES);
    p->memory.shmem_pages = mm_exact(mm, MM_SHMEMPAGES);
    p->memory.swap_pages = mm_exact(mm, MM_SWAPENTS);
    p->pid = process_of(task);
    p->oom_score_adj = BPF_CORE_READ(task, signal, oom_score_adj);
    p->in_memcg = is_in_memcg((__u64)task, memcg_id);
    BPF_CORE_READ_STR_INTO(&p->comm, task, comm);
}

/* Returns the index to insert at; OOMKILL_LARGEST: it is smaller than all. */
static __always_inline __u32 place_for(struct walk *w, __s64 pages)
{
    __u32 at = OOMKILL_LARGEST;
    if (w->n_largest < OOMKILL_LARGEST)
        return w->n_largest++;
    for (__u32 i = 0; i < OOMKILL_LARGEST; i++)
        if (resident(&w->largest[i].memory) < pages) {
            pages = resident(&w->largest[i].memory);
            at = i;
        }
    return at;
}

static __always_inline void consider(struct walk *w, const struct task_struct *task)
{
    const struct mm_struct *mm = memory_of(task);
    if (!mm)
        return;
    w->processes++;
    w->sharing += (__u64)mm == w->mm;
    __u32 at =
        place_for(w, mm_pages(mm, MM_ANONPAGES) + mm_pages(mm, MM_FILEPAGES) + mm_pages(mm, MM_SHMEMPAGES));
    if (at < OOMKILL_LARGEST)
        describe(&w->largest[at], task, mm, w->memcg_id);
}

/* Does one step. Returns 1 if it was the last one. */
GLOBAL int walk_step(__u32 step)
{
    __u32 zero = 0;
    struct walk *w = bpf_map_lookup_elem(&walks, &zero);
    (void)step;
    if (!w)
        return 1;
    const struct task_struct *task = (const void *)w->at;
    __u32 pid = BPF_CORE_READ(task, pid);
    if (w->wanted_pid && pid == w->wanted_pid)
        w->found = w->at;
    else if (!w->wanted_pid && pid)
        consider(w, task);
    /* The ring leads through the idle task once; a second time if the one where it began has left it. */
    w->idle_seen += !pid;
    w->at = (__u64)BPF_CORE_READ(task, tasks.next) - bpf_core_field_offset(struct task_struct, tasks);
    w->ended = w->at == w->start || w->idle_seen > 1 || w->found;
    return w->ended != 0;
}

/* The verifier wants a bounded result here, and knows none of walk_step(); clang 19 knows it, and would leave the
 * bound out. */
static long walk_each(__u32 step, void *unused)
{
    (void)unused;
    long last = walk_step(step);
    barrier_var(last);
    return last & 1;
}

static __attribute__((noinline)) int walk_go(struct walk *w)
{
    const struct task_struct *task = (const void *)bpf_get_current_task();
    w->start = w->at = (__u64)BPF_CORE_READ(task, group_leader);
    if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_loop))
        bpf_loop(WALK_MOST, walk_each, NULL, 0);
    else
        for (__u32 i = 0; i < WALK_MOST_UNTIL; i++)
            if (walk_step(i))
                break;
    w->cut = !w->ended;
    return 0;
}

static __always_inline struct walk *walk_new(void)
{
    __u32 zero = 0;
    struct walk *w = bpf_map_lookup_elem(&walks, &zero);
    if (w)
        __builtin_memset(w, 0, offsetof(struct walk, largest));
    return w;
}

/* Finds the largest processes, and how many share this memory. NULL only satisfies the verifier. */
static __always_inline struct walk *walk_all(const struct mm_struct *mm, __u64 memcg_id)
{
    struct walk *w = walk_new();
    if (!w)
        return NULL;
    w->mm = (__u64)mm;
    w->memcg_id = memcg_id;
    walk_go(w);
    return w;
}

/* Returns the task with this pid: the running one, the chosen one, or a process; NULL: none of them. */
static __always_inline const struct task_struct *walk_find(__u32 pid, const struct task_struct *chosen)
{
    const struct task_struct *task = (const void *)bpf_get_current_task();
    if ((__u32)BPF_CORE_READ(task, pid) == pid)
        return task;
    if (chosen && (__u32)BPF_CORE_READ(chosen, pid) == pid)
        return chosen;
    struct walk *w = walk_new();
    if (!w)
        return NULL;
    w->wanted_pid = pid;
    walk_go(w);
    return (const void *)w->found;
}

#endif
