// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The least that a program can do at an event: nothing, count it, record it in the ring. For `allium bench`. */
#include "bpf/kernel.h"

#include "bpf/hit.h"

#include <bpf/bpf_helpers.h>

#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile struct hit_config config = {0};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, HIT_COUNTS);
    __uint(key_size, sizeof(__u32));
    __uint(value_size, sizeof(__u64));
} counts SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 1 << 22);
} ring SEC(".maps");

static __always_inline void count(__u32 what)
{
    __u64 *n = bpf_map_lookup_elem(&counts, &what);
    if (n)
        __sync_fetch_and_add(n, 1); /* another thread may take the CPU within the program */
}

static __always_inline void record(__u64 address)
{
    struct hit_record *r = bpf_ringbuf_reserve(&ring, sizeof(*r), 0);
    if (!r) {
        count(HIT_LOST);
        return;
    }
    r->time_ns = bpf_ktime_get_ns();
    r->address = address;
    r->tid = (__u32)bpf_get_current_pid_tgid();
    r->cpu = bpf_get_smp_processor_id();
    r->arguments[0] = r->arguments[1] = 0;
    bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
}

/* A uprobe with a BPF program is one of the process, but a kprobe is hit by all processes. */
static __always_inline bool is_of_process(void)
{
    return bpf_get_current_pid_tgid() >> 32 == config.pid;
}

/* The filter is the same for all programs of system calls, so that they differ by what they do. */
static __always_inline bool wanted(const __u64 *ctx)
{
    return ctx[1] == config.syscall && is_of_process();
}

SEC("kprobe") int probe_empty(void *ctx)
{
    return 0;
}

SEC("kprobe") int probe_count(void *ctx)
{
    count(HIT_SEEN);
    return 0;
}

SEC("kprobe") int probe_ring(void *ctx)
{
    record(0);
    return 0;
}

SEC("kprobe") int function_empty(void *ctx)
{
    return is_of_process();
}

SEC("kprobe") int function_count(void *ctx)
{
    if (is_of_process())
        count(HIT_SEEN);
    return 0;
}

SEC("kprobe") int function_ring(void *ctx)
{
    if (is_of_process())
        record(0);
    return 0;
}

/* The names of the functions are KERNEL_PROBE_FUNCTION (bench/kernel/kernel_probe.h). */
SEC("fentry/__do_sys_getppid") int entered_empty(const __u64 *ctx)
{
    return 0;
}

SEC("fentry/__do_sys_getppid") int entered_count(const __u64 *ctx)
{
    if (is_of_process())
        count(HIT_SEEN);
    return 0;
}

SEC("fentry/__do_sys_getppid") int entered_ring(const __u64 *ctx)
{
    if (is_of_process())
        record(0);
    return 0;
}

SEC("raw_tp/sys_enter") int call_empty(const __u64 *ctx)
{
    return wanted(ctx);
}

SEC("raw_tp/sys_enter") int call_count(const __u64 *ctx)
{
    if (wanted(ctx))
        count(HIT_SEEN);
    return 0;
}

SEC("raw_tp/sys_enter") int call_ring(const __u64 *ctx)
{
    if (wanted(ctx))
        record(ctx[1]);
    return 0;
}
