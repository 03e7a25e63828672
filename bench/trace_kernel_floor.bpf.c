// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What a tracer of madvise(2) does at least, for one process: nothing, a count, and a record of a BPF ring buffer. The
 * filter, the way to the arguments and the fields of a record are those of `allium trace`.
 */
#include "bpf/kernel.h"

#include <bpf/bpf_helpers.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define SYS_MADVISE 28
#define PIDS        (1u << 22)

__u64 traced[PIDS / 64] SEC(".bss.traced"); /* a bit for each process */

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u64);
} counts SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 4 << 20);
} records SEC(".maps");

struct begin {
    __u64 ns;
    __u16 id, size;
    __u32 thread, pid, call;
};

struct end {
    __u64 ns;
    __u16 id, size;
    __u32 thread, pid, advice;
    __u64 address, length, result;
};

static __always_inline bool is_wanted(long call)
{
    const __u32 tgid = bpf_get_current_pid_tgid() >> 32;
    return call == SYS_MADVISE && traced[tgid / 64 & (PIDS / 64 - 1)] >> (tgid & 63) & 1;
}

static __always_inline int count_of(long call)
{
    const __u32 zero = 0;
    __u64 *n = is_wanted(call) ? bpf_map_lookup_elem(&counts, &zero) : NULL;
    if (n)
        (*n)++;
    return 0;
}

SEC("tp_btf/sys_enter") int BPF_PROG(empty_enter, struct pt_regs *regs, long call)
{
    return 0;
}

SEC("tp_btf/sys_exit") int BPF_PROG(empty_exit, struct pt_regs *regs, long result)
{
    return 0;
}

SEC("tp_btf/sys_enter") int BPF_PROG(count_enter, struct pt_regs *regs, long call)
{
    return count_of(call);
}

SEC("tp_btf/sys_exit") int BPF_PROG(count_exit, struct pt_regs *regs, long result)
{
    return count_of((long)regs->orig_ax);
}

SEC("tp_btf/sys_enter") int BPF_PROG(ring_enter, struct pt_regs *regs, long call)
{
    struct begin *to = is_wanted(call) ? bpf_ringbuf_reserve(&records, sizeof(*to), 0) : NULL;
    if (!to)
        return 0;
    const __u64 ids = bpf_get_current_pid_tgid();
    to->ns = bpf_ktime_get_ns();
    to->id = 1;
    to->size = sizeof(*to) / 8;
    to->thread = (__u32)ids;
    to->pid = ids >> 32;
    to->call = (__u32)call;
    bpf_ringbuf_submit(to, BPF_RB_NO_WAKEUP);
    return 0;
}

SEC("tp_btf/sys_exit") int BPF_PROG(ring_exit, struct pt_regs *regs, long result)
{
    struct end *to = is_wanted((long)regs->orig_ax) ? bpf_ringbuf_reserve(&records, sizeof(*to), 0) : NULL;
    if (!to)
        return 0;
    const __u64 ids = bpf_get_current_pid_tgid();
    to->ns = bpf_ktime_get_ns();
    to->id = 2;
    to->size = sizeof(*to) / 8;
    to->thread = (__u32)ids;
    to->pid = ids >> 32;
    to->advice = (__u32)regs->dx;
    to->address = regs->di;
    to->length = regs->si;
    to->result = (__u64)result;
    bpf_ringbuf_submit(to, BPF_RB_NO_WAKEUP);
    return 0;
}
