/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_MM_BPF_H
#define BPF_MM_BPF_H

/*
 * How much memory an address space has. Since 6.2 the kernel keeps a sum and, for each CPU, what that one has not added
 * to it yet: up to batch (32, or twice the number of CPUs) pages each. mm_pages() is what the kernel's own messages
 * have, mm_exact() adds the parts.
 *
 * Runs in: the kernel. Needs cpu_offsets_find() before mm_exact(), and `possible_cpus` set before the programs are
 * loaded.
 */

#include "bpf/sys.bpf.h"

#define MM_CPUS_MAX 512u

const volatile __u32 possible_cpus = 0;

/* A variable of each CPU, of which nothing but the place is wanted. */
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __uint(key_size, sizeof(__u32));
    __uint(value_size, sizeof(__u64));
} anchor SEC(".maps");

struct cpu_offsets {
    const void *anchor;
    __u64 of[MM_CPUS_MAX]; /* from a pointer to variables of all CPUs to that of one */
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

/* mm_exact() is exact here, but for what other CPUs do meanwhile. */
static __always_inline bool mm_is_exact(void)
{
    return mm_has_parts() && possible_cpus && possible_cpus <= MM_CPUS_MAX;
}

/*
 * The kernel's table of offsets is a symbol that kallsyms need not have. But a map's own variables have the same
 * offsets: each CPU's address is the map's pointer to them plus the offset.
 */
GLOBAL int cpu_offsets_find(void)
{
    __u32 zero = 0;
    __u64 base = 0;
    struct cpu_offsets *o = bpf_map_lookup_elem(&cpu_offsets, &zero);
    if (!o || !mm_is_exact())
        return 0;
    o->anchor = &anchor; /* through memory: what is read back is a number, which may be computed with */
    const struct bpf_array *array = *(const void *const volatile *)&o->anchor;
    bpf_core_read(&base, sizeof(base), &array->pptrs[0]);
    for (__u32 cpu = 0; cpu < MM_CPUS_MAX && cpu < possible_cpus; cpu++) {
        o->anchors[cpu] = (__u64)bpf_map_lookup_percpu_elem(&anchor, &zero, cpu);
        __u64 at = *(volatile __u64 *)&o->anchors[cpu];
        o->of[cpu] = at ? at - base : 0;
    }
    return 0;
}

/* One of the counters. The compiler knows neither how long they are here nor, from a variable, which one is meant. */
static __always_inline const struct percpu_counter *mm_counter(const struct mm_struct *mm, __u32 kind)
{
    return (const void *)((__u64)mm + bpf_core_field_offset(struct mm_struct, rss_stat) +
                          (__u64)kind * bpf_core_type_size(struct percpu_counter));
}

/* Pages of a kind, as the kernel sees them without looking at each CPU. */
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
