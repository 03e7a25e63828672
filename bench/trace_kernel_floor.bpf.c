// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a tracer of madvise(2) does at least, for one process: nothing, a count, and a record of a BPF ring buffer. */
#include "bpf/kernel.h"

#include <bpf/bpf_helpers.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define SYS_MADVISE 28
#define WORDS       6 /* of a record: as many as the events of `allium trace` have */

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 32768);
    __type(key, __u32);
    __type(value, __u32);
} traced SEC(".maps");

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

static __always_inline bool is_wanted(long call)
{
    const __u32 tgid = bpf_get_current_pid_tgid() >> 32;
    return call == SYS_MADVISE && bpf_map_lookup_elem(&traced, &tgid);
}

static __always_inline int count_of(long call)
{
    const __u32 zero = 0;
    __u64 *n = is_wanted(call) ? bpf_map_lookup_elem(&counts, &zero) : NULL;
    if (n)
        (*n)++;
    return 0;
}

static __always_inline int record_of(long call, __u64 a, __u64 b)
{
    __u64 *to = is_wanted(call) ? bpf_ringbuf_reserve(&records, WORDS * sizeof(*to), 0) : NULL;
    if (!to)
        return 0;
    to[0] = bpf_ktime_get_ns();
    to[1] = bpf_get_current_pid_tgid();
    to[2] = a;
    to[3] = b;
    to[4] = (__u64)call;
    to[5] = bpf_get_smp_processor_id();
    bpf_ringbuf_submit(to, BPF_RB_NO_WAKEUP);
    return 0;
}

SEC("raw_tp/sys_enter") int BPF_PROG(empty_enter, struct pt_regs *regs, long call)
{
    return 0;
}

SEC("raw_tp/sys_exit") int BPF_PROG(empty_exit, struct pt_regs *regs, long result)
{
    return 0;
}

SEC("raw_tp/sys_enter") int BPF_PROG(count_enter, struct pt_regs *regs, long call)
{
    return count_of(call);
}

SEC("raw_tp/sys_exit") int BPF_PROG(count_exit, struct pt_regs *regs, long result)
{
    return count_of((long)BPF_CORE_READ(regs, orig_ax));
}

SEC("raw_tp/sys_enter") int BPF_PROG(ring_enter, struct pt_regs *regs, long call)
{
    return record_of(call, BPF_CORE_READ(regs, di), BPF_CORE_READ(regs, si));
}

SEC("raw_tp/sys_exit") int BPF_PROG(ring_exit, struct pt_regs *regs, long result)
{
    return record_of((long)BPF_CORE_READ(regs, orig_ax), (__u64)result, 0);
}
