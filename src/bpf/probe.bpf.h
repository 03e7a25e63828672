/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_PROBE_BPF_H
#define BPF_PROBE_BPF_H

/*
 * `allium trace --function`: the programs of uprobes on functions, and on static probes. A uprobe stops every process
 * that executes the place; only events of the traced processes are written.
 *
 * The file of the kernel's events includes this: the traced processes and the rings are the same.
 *
 * Runs in: the kernel, as the thread that has hit the probe.
 */

#include "bpf/traced.bpf.h"

#include "bpf/kernel_ring.bpf.h"
#include "bpf/probe.h"

/* Calls of allium itself count, too: it measures what a probe costs. */
__u32 prices = 0;

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __uint(key_size, sizeof(__u32));
    __uint(value_size, sizeof(struct probe_static_site));
} static_sites SEC(".maps");

static __always_inline bool wants_probe(void)
{
    return runs() && (is_traced(bpf_get_current_pid_tgid() >> 32) ||
                      (prices && current_ids() >> 32 == config.own_tgid));
}

struct probe_event {
    struct ring_event head;
    __u32 pid, unused;
    __u64 values[PROBE_STATIC_ARGUMENTS];
};

static __always_inline void probe_append(struct probe_event *e, __u32 id, const __u32 n)
{
    const __u64 ids = current_ids();
    e->head.id = id;
    e->head.size = 3 + n;
    e->head.thread = (__u32)ids;
    e->pid = ids >> 32;
    e->unused = 0;
    if (counts_wanted && !prices)
        count(KERNEL_EVENTS_WANTED);
    ring_append((uint64_t *)e, 3 + n);
}

/* ---- functions: the cookie is the event's number ---- */

SEC("uprobe") int probe_enters(struct pt_regs *regs)
{
    if (!wants_probe())
        return 0;
    struct probe_event e;
    e.values[0] = regs->di;
    e.values[1] = regs->si;
    e.values[2] = regs->dx;
    e.values[3] = regs->cx;
    e.values[4] = regs->r8;
    e.values[5] = regs->r9;
    probe_append(&e, bpf_get_attach_cookie(regs), PROBE_FUNCTION_ARGUMENTS);
    return 0;
}

SEC("uretprobe") int probe_returns(struct pt_regs *regs)
{
    if (!wants_probe())
        return 0;
    struct probe_event e;
    e.values[0] = regs->ax;
    probe_append(&e, bpf_get_attach_cookie(regs), 1);
    return 0;
}

/* ---- static probes ---- */

static __always_inline __u64 read_register(const struct pt_regs *regs, __u32 at)
{
    __u64 value = 0;
    if (at < sizeof(struct probe_static_site)) /* the tool's number, which the verifier does not know */
        bpf_probe_read_kernel(&value, sizeof(value), (const void *)regs + at);
    return value;
}

/* A value that cannot be read is 0: it may lie in memory that is paged out. */
static __attribute__((noinline)) __u64 read_operand(const struct pt_regs *regs, const struct probe_operand *o)
{
    if (!o)
        return 0;
    __u64 value = o->value;
    __u32 bytes = o->bytes;
    if (o->place != PROBE_CONSTANT && o->base != PROBE_NO_REGISTER)
        value += read_register(regs, o->base);
    if (o->place == PROBE_MEMORY) {
        if (o->index != PROBE_NO_REGISTER)
            value += read_register(regs, o->index) * o->scale;
        const void *at = (const void *)value;
        value = 0;
        bpf_probe_read_user(&value, bytes == 8 ? 8 : bytes == 4 ? 4 : bytes == 2 ? 2 : 1, at);
    }
    const __u32 unused = (64 - 8 * bytes) & 63;
    return o->is_signed ? (__u64)((__s64)(value << unused) >> unused) : value << unused >> unused;
}

#define STATIC_APPEND(n)                                                                                     \
    case n:                                                                                                  \
        probe_append(&e, site->id, n);                                                                       \
        break

SEC("uprobe") int probe_static(struct pt_regs *regs)
{
    const __u32 number = bpf_get_attach_cookie(regs);
    const struct probe_static_site *site = bpf_map_lookup_elem(&static_sites, &number);
    if (!site || !wants_probe())
        return 0;
    struct probe_event e;
    for (__u32 i = 0; i < PROBE_STATIC_ARGUMENTS; i++)
        e.values[i] = i < site->n ? read_operand(regs, &site->operands[i]) : 0;
    switch (site->n) {
        STATIC_APPEND(0);
        STATIC_APPEND(1);
        STATIC_APPEND(2);
        STATIC_APPEND(3);
        STATIC_APPEND(4);
        STATIC_APPEND(5);
        STATIC_APPEND(6);
        STATIC_APPEND(7);
        STATIC_APPEND(8);
        STATIC_APPEND(9);
        STATIC_APPEND(10);
        STATIC_APPEND(11);
        STATIC_APPEND(12);
    }
    return 0;
}

#endif
