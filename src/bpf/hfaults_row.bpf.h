/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_HFAULTS_ROW_BPF_H
#define BPF_HFAULTS_ROW_BPF_H

/*
 * The row of hfaults that an event belongs to: that of the current task, or of the process whose memory another task
 * changes.
 *
 * Runs in: the kernel. A part of hfaults.bpf.c.
 */

#include "bpf/sys.bpf.h"

#include "bpf/hfaults.h"

SYS_TABLE(struct hfaults_key, struct hfaults_value)

/* Returns the process of an address space, if it is not the current one; NULL: the current task stands for it. */
static __always_inline const struct task_struct *owner_of(const struct mm_struct *mm)
{
    const struct task_struct *current = (const void *)bpf_get_current_task();
    if (BPF_CORE_READ(current, mm) == mm || !bpf_core_field_exists(mm->owner))
        return NULL;
    return BPF_CORE_READ(mm, owner);
}

/* wanted(), for what another task does to the memory of a process. It is no thread's: a filter by thread has none. */
static __attribute__((noinline)) bool owner_wanted(const struct task_struct *owner)
{
    char comm[SYS_COMM_BYTES] __attribute__((aligned(8))) = {0};
    if (!runs())
        return false;
    __u32 pid = process_of(owner);
    if ((config.own_tgid && pid == config.own_tgid) || config.filters & SYS_FILTER_TID)
        return false;
    if (config.filters & SYS_FILTER_TGID && (pid != config.tgid || !began_at(owner, config.tgid_began)))
        return false;
    if (config.filters & SYS_FILTER_UID && BPF_CORE_READ(owner, real_cred, uid.val) != config.uid)
        return false;
    bpf_core_read(comm, sizeof(comm), &owner->comm);
    if (config.filters & SYS_FILTER_COMM && !same_comm(comm))
        return false;
    return !(config.filters & (SYS_FILTER_CGROUP | SYS_FILTER_CGROUP_V1)) || in_cgroup(owner);
}

static __always_inline bool wanted_of(const struct task_struct *owner)
{
    return owner ? owner_wanted(owner) : wanted();
}

/* This CPU's row until row_done(). ctx: NULL if the stack is not the event's; owner: NULL for the current task. */
static __attribute__((noinline)) struct hfaults_value *row_of(void *ctx, const struct task_struct *owner,
                                                              __u32 class, __u32 result)
{
    struct row_key row = {0};
    if (config.parts & HFAULTS_BY_PROCESS)
        row.key.pid = owner ? process_of(owner) : current_ids() >> 32;
    if (config.parts & (HFAULTS_BY_PROCESS | HFAULTS_BY_COMM)) {
        if (owner)
            bpf_core_read(row.key.comm, sizeof(row.key.comm), &owner->comm);
        else
            comm_now(row.key.comm);
    }
    if (config.parts & HFAULTS_BY_CLASS)
        row.key.class = class;
    if (config.parts & HFAULTS_BY_RESULT)
        row.key.result = result;
    if (config.parts & HFAULTS_BY_STACK) {
        row.key.kernel_stack = ctx ? kernel_stack_now(ctx) : SYS_NO_STACK;
        row.key.user_stack = ctx ? user_stack_now(ctx) : SYS_NO_STACK;
    }
    if (config.parts & HFAULTS_BY_CGROUP)
        row.key.cgroup = owner ? cgroup_of(owner) : cgroup_now();
    struct hfaults_value *v = row_at(&row);
    if (v && owner && config.cgroups)
        ((struct row *)v)->tail.cgroup = cgroup_of(owner);
    if (v && config.parts & HFAULTS_BY_STACK)
        v->time_ns = bpf_ktime_get_ns();
    return v;
}

static __always_inline void mark(struct hfaults_value *v, __u32 which)
{
    barrier_var(which); /* or the compiler leaves out the comparison, which the verifier needs */
    if (which < HFAULTS_MARKS)
        v->marked[which]++;
}

#endif
