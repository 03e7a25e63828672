// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The least that can be done at the kernel's slab tracepoints (nothing, and to count by call site), at both ends of
 * system calls (nothing), and at page faults (nothing, and to take the user stack). */
#include "bpf/kernel.h"

#include <bpf/bpf_helpers.h>

#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_HASH);
    __uint(max_entries, 16384);
    __type(key, __u64);
    __type(value, __u64);
} counts SEC(".maps");

static __always_inline int count_of(__u64 call_site)
{
    const __u64 one = 1;
    __u64 *n = bpf_map_lookup_elem(&counts, &call_site);
    if (n)
        (*n)++;
    else
        bpf_map_update_elem(&counts, &call_site, &one, BPF_ANY);
    return 0;
}

#define FLOOR(event)                                                                                         \
    SEC("raw_tp/" #event) int BPF_PROG(empty_##event, __u64 call_site)                                       \
    {                                                                                                        \
        return 0;                                                                                            \
    }                                                                                                        \
    SEC("raw_tp/" #event) int BPF_PROG(count_##event, __u64 call_site)                                       \
    {                                                                                                        \
        return count_of(call_site);                                                                          \
    }

FLOOR(kmalloc)
FLOOR(kmem_cache_alloc)
FLOOR(kfree)
FLOOR(kmem_cache_free)

struct {
    __uint(type, BPF_MAP_TYPE_STACK_TRACE);
    __uint(max_entries, 16384);
    __uint(key_size, sizeof(__u32));
    __uint(value_size, 127 * sizeof(__u64));
} stacks SEC(".maps");

SEC("raw_tp/sys_enter") int call_enter(void *ctx)
{
    return 0;
}

SEC("raw_tp/sys_exit") int call_exit(void *ctx)
{
    return 0;
}

SEC("perf_event") int fault_empty(void *ctx)
{
    return 0;
}

SEC("perf_event") int fault_stack(void *ctx)
{
    bpf_get_stackid(ctx, &stacks, BPF_F_USER_STACK);
    return 0;
}
