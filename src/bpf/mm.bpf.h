/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_MM_BPF_H
#define BPF_MM_BPF_H

/*
 * Reads how much memory an address space has. Since 6.2 the kernel keeps a sum and, for each CPU, the part
 * that was not added yet: up to batch (32, or twice the number of CPUs) pages each. mm_pages() is the value
 * in the kernel's own messages; mm_exact() adds the parts.
 *
 * Runs in: the kernel. Call cpu_offsets_find() before mm_exact(), and set `possible_cpus` before loading.
 */

#include "bpf/sys.bpf.h"

#define MM_CPUS_MAX 512u

const volatile __u32 possible_cpus = 0;

/* A per-CPU variable; only its address is used. */
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __uint(key_size, sizeof(__u32));
    __uint(value_size, sizeof(__u64));
} anchor SEC(".maps");

struct cpu_offsets {
    const void *anchor;
    __u64 of[MM_CPUS_MAX]; /* offset from a per-CPU pointer to the variable of one CPU */
    __u64 anchors[MM_CPUS_MAX];
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __uint(key_size, sizeof(__u32));
    __uint(value_size, sizeof(struct cpu_offsets));
} cpu_offsets SEC(".maps");

static __always_inline bool mm_has_parts(void)
{
    return !bpf_core_type_exists(struct mm_rss_stat);
}

/* mm_exact() is exact here, apart from what other CPUs do at the same time. */
static __always_inline bool mm_is_exact(void)
{
    return mm_has_parts() && possible_cpus && possible_cpus <= MM_CPUS_MAX;
}

/*
 * kallsyms need not have the kernel's table of offsets. But a map's own variables have the same offsets: the
 * address on each CPU is the map's pointer to them plus the offset.
 */
GLOBAL int cpu_offsets_find(void)
{
    __u32 zero = 0;
    __u64 base = 0;
    struct cpu_offsets *o = bpf_map_lookup_elem(&cpu_offsets, &zero);
    if (!o || !mm_is_exact())
        return 0;
    /* through memory, so that the value is a plain number, which the verifier allows to compute with */
    o->anchor = &anchor;
    const struct bpf_array *array = *(const void *const volatile *)&o->anchor;
    bpf_core_read(&base, sizeof(base), &array->pptrs[0]);
    for (__u32 cpu = 0; cpu < MM_CPUS_MAX && cpu < possible_cpus; cpu++) {
        o->anchors[cpu] = (__u64)bpf_map_lookup_percpu_elem(&anchor, &zero, cpu);
        __u64 at = *(volatile __u64 *)&o->anchors[cpu];
        o->of[cpu] = at ? at - base : 0;
    }
    return 0;
}

/* One of the counters. The compiler knows neither their size in this kernel nor, for a variable index, which
 * one is meant. */
static __always_inline const struct percpu_counter *mm_counter(const struct mm_struct *mm, __u32 kind)
{
    return (const void *)((__u64)mm + bpf_core_field_offset(struct mm_struct, rss_stat) +
                          (__u64)kind * bpf_core_type_size(struct percpu_counter));
}

/* Returns pages of a kind, as the kernel sees them without reading each CPU. */
static __always_inline __s64 mm_pages(const struct mm_struct *mm, __u32 kind)
{
    __s64 n = 0;
    if (mm_has_parts()) {
        n = BPF_CORE_READ(mm_counter(mm, kind), count);
    } else {
        const struct mm_struct___before_6_2 *old = (const void *)mm;
        const atomic_long_t *first = (const void *)((__u64)old + bpf_core_field_offset(old->rss_stat));
        n = BPF_CORE_READ(first + kind, counter); /* of the same length everywhere */
    }
    return n > 0 ? n : 0;
}

GLOBAL __s64 mm_exact_at(__u64 address, __u32 kind)
{
    __u32 zero = 0;
    const struct mm_struct *mm = (const void *)address;
    const struct cpu_offsets *o = bpf_map_lookup_elem(&cpu_offsets, &zero);
    const __s32 *parts = NULL;
    __s64 n = 0;
    if (!o || !mm_is_exact())
        return mm_pages(mm, kind);
    n = BPF_CORE_READ(mm_counter(mm, kind), count);
    parts = BPF_CORE_READ(mm_counter(mm, kind), counters);
    for (__u32 cpu = 0; cpu < MM_CPUS_MAX && cpu < possible_cpus; cpu++) {
        __s32 part = 0;
        if (parts && o->of[cpu])
            bpf_probe_read_kernel(&part, sizeof(part), (const void *)((__u64)parts + o->of[cpu]));
        n += part;
    }
    return n > 0 ? n : 0;
}

static __always_inline __s64 mm_exact(const struct mm_struct *mm, __u32 kind)
{
    return mm_exact_at((__u64)mm, kind);
}

#endif
