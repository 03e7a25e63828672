/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_TASK_BPF_H
#define BPF_TASK_BPF_H

/*
 * What the scheduler knows of a task: its priority, its state, its CPU.
 *
 * Runs in: the kernel.
 */

#include "bpf/sys.bpf.h"

#define FIRST_NORMAL_PRIO 100
#define TASK_REPORTED     0x7fu
#define TASK_IDLE         0x402u
#define REPORTED_IDLE     0x80

static __always_inline __s32 prio_of(const struct task_struct *task)
{
    return BPF_CORE_READ(task, prio) - FIRST_NORMAL_PRIO;
}

/* The state as the kernel's own trace events have it: the highest of the bits. */
static __always_inline __s32 reported_state(const struct task_struct *task, unsigned int state)
{
    const __u32 all = (state | (__u32)BPF_CORE_READ(task, exit_state)) & TASK_REPORTED;
    __s32 highest = TASK_REPORTED / 2 + 1;
    if ((state & TASK_IDLE) == TASK_IDLE)
        return REPORTED_IDLE;
    for (int i = 0; i < 7 && !(all & (__u32)highest); i++)
        highest >>= 1;
    return highest;
}

struct task_struct___before_5_16 {
    unsigned int cpu;
};

static __always_inline __u32 cpu_of(const struct task_struct *task)
{
    if (bpf_core_field_exists(task->thread_info.cpu))
        return BPF_CORE_READ(task, thread_info.cpu);
    return BPF_CORE_READ((const struct task_struct___before_5_16 *)task, cpu);
}

#endif
