/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_CALL_BPF_H
#define BPF_CALL_BPF_H

/*
 * System calls of the current thread, from their entry to their exit. Programs at both ends run for each call of the
 * machine: an unwanted call must cost one comparison. A call with one end seen is counted, and has no duration.
 *
 * Runs in: the kernel.
 */

#include "bpf/sys.bpf.h"

#include "bpf/call.h"

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, CALL_THREADS);
    __uint(key_size, sizeof(__u32));
    __uint(value_size, sizeof(struct call_begun));
} calls SEC(".maps");

/* A call: its number, and its arguments, which the registers still hold at its exit. */
struct call {
    __s64 number;
    __u64 arg[6];
};

/* Where the verifier knows the registers (tp_btf), they are read directly. */
static __always_inline struct call call_of(const struct pt_regs *regs)
{
    return (struct call){(__s64)regs->orig_ax, {regs->di, regs->si, regs->dx, regs->r10, regs->r8, regs->r9}};
}

static __always_inline struct call call_read(const struct pt_regs *regs)
{
    if (config.casts)
        return call_of(CAST_TO(pt_regs, regs));
    return (struct call){(__s64)BPF_CORE_READ(regs, orig_ax),
                         {BPF_CORE_READ(regs, di), BPF_CORE_READ(regs, si), BPF_CORE_READ(regs, dx),
                          BPF_CORE_READ(regs, r10), BPF_CORE_READ(regs, r8), BPF_CORE_READ(regs, r9)}};
}

static __always_inline __s64 call_of_number(const struct pt_regs *regs)
{
    return (__s64)regs->orig_ax;
}

static __always_inline __s64 call_read_number(const struct pt_regs *regs)
{
    return (__s64)KERNEL_READ(pt_regs, regs, orig_ax);
}

static __always_inline struct call_begun *call_of_thread(__u32 tid)
{
    const __u32 slot = tid % CALL_THREADS;
    return bpf_map_lookup_elem(&calls, &slot);
}

/* Returns whether the call is one of a 32-bit program, whose numbers are others. */
static __always_inline bool call_is_of_32_bits(void)
{
    return bpf_get_current_task_btf()->thread_info.status & X86_TS_COMPAT;
}

/* At the entry of a wanted call: returns where the tool may keep what is gone later. */
static __always_inline struct call_begun *call_enter(__s64 number)
{
    const __u32 tid = (__u32)bpf_get_current_pid_tgid();
    struct call_begun *c = call_of_thread(tid);
    if (!c)
        return NULL;
    c->tid = tid;
    c->number = (__s32)number;
    c->began_ns = bpf_ktime_get_ns();
    return c;
}

/* At the exit of a wanted call: returns the data of its entry, valid until call_done(). If the entry was not seen,
 * began_ns and all that is kept are 0. NULL: another thread's call is in the slot, and this one is counted. */
static __always_inline struct call_begun *call_exit(__s64 number)
{
    const __u32 tid = (__u32)bpf_get_current_pid_tgid();
    struct call_begun *c = call_of_thread(tid);
    if (c && c->tid != tid && c->began_ns) {
        count(CALL_BEGUN_BEFORE);
        return NULL;
    }
    if (c && (c->tid != tid || c->number != (__s32)number || !c->began_ns))
        *c = (struct call_begun){0};
    return c;
}

static __always_inline void call_done(struct call_begun *c)
{
    c->began_ns = 0;
}

/* The open file of a descriptor of the current process; NULL: none. */
static __always_inline const struct file *call_file(__s32 fd)
{
    const struct files_struct *files = bpf_get_current_task_btf()->files;
    const struct fdtable *table = files ? files->fdt : NULL;
    const struct file *file = NULL;
    if (fd < 0 || !table || (__u32)fd >= table->max_fds)
        return NULL;
    bpf_probe_read_kernel(&file, sizeof(file), table->fd + fd);
    return file;
}

#endif
