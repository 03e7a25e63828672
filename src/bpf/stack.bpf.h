/* SPDX-License-Identifier: BSD-2-Clause */
#include "bpf/sys.bpf.h" /* which includes this where its parts have what they need */

#ifndef BPF_STACK_BPF_H
#define BPF_STACK_BPF_H

/*
 * Stacks. Each stack is stored once and identified by the number of its slot. The kernel's own stack table
 * (BPF_MAP_TYPE_STACK_TRACE) is not used: it has one slot for each hash, so of two stacks with the same hash
 * one finds no room; and its walk of user stacks reads one frame at a time, and takes a fault at the end of
 * each.
 *
 * Runs in: the kernel. A part of sys.bpf.h.
 */

#define STACK_PROBES 32u /* slots to try for a stack, one after the other */
/* number of reads of a slot that another CPU is writing to; that takes some 100 ns */
#define STACK_WAITS  64u
#define STACK_CHUNK  1024u /* bytes of a user stack that are read at once: a dozen frames of usual size */
#define STACK_LINK   16u   /* of a frame: the address of the next frame, and the return address */
#define STACK_LEVELS 4u    /* nested programs on a CPU, each interrupting the other */

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 16384);
    __uint(key_size, sizeof(__u32));
    __uint(value_size, sizeof(struct sys_stack));
} stacks SEC(".maps");

/* `busy`: if an interrupt comes while it is in use, the interrupt's event needs a stack of its own and uses
 * the next level's. */
struct stack_scratch {
    struct sys_frames frames;
    volatile __u64 busy;
    __u8 chunk[STACK_CHUNK];
};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, STACK_LEVELS);
    __uint(key_size, sizeof(__u32));
    __uint(value_size, sizeof(struct stack_scratch));
} stack_scratch SEC(".maps");

#ifndef STACK_HASH /* a test has one that tells no two stacks apart */
#define STACK_HASH(hash, address) (((hash) ^ (address)) * 0x9e3779b97f4a7c15ull)
#endif

GLOBAL __u64 stack_hash(__u32 level, __u32 n)
{
    __u64 hash = n;
    struct stack_scratch *s = bpf_map_lookup_elem(&stack_scratch, &level);
    if (!s)
        return 0;
    for (__u32 i = 0; i < SYS_STACK_DEPTH && i < n; i++)
        hash = STACK_HASH(hash, s->frames.ip[i]);
    return hash ^ hash >> 32;
}

/* Returns whether the slot has exactly the frames in the scratch. */
GLOBAL __u32 stack_same(__u32 slot, __u32 level, __u32 n)
{
    struct stack_scratch *s = bpf_map_lookup_elem(&stack_scratch, &level);
    struct sys_stack *have = bpf_map_lookup_elem(&stacks, &slot);
    if (!s || !have || have->n != n)
        return 0;
    for (__u32 i = 0; i < SYS_STACK_DEPTH && i < n; i++)
        if (have->frames.ip[i] != s->frames.ip[i])
            return 0;
    return 1;
}

/* Returns its state once it is complete. The writer may be the code that we interrupted, so the wait is
 * limited. */
GLOBAL __u32 stack_wait_state(__u32 slot)
{
    const volatile struct sys_stack *have = bpf_map_lookup_elem(&stacks, &slot);
    __u32 state = SYS_STACK_FREE;
    for (__u32 i = 0; have && i < STACK_WAITS; i++) {
        state = have->state;
        if (state != SYS_STACK_WRITTEN)
            break;
    }
    return state;
}

/* Returns true if the slot was free and has the scratch's frames now. */
GLOBAL __u32 stack_put(__u32 slot, __u32 level, __u32 n, __u64 hash)
{
    struct stack_scratch *s = bpf_map_lookup_elem(&stack_scratch, &level);
    struct sys_stack *to = bpf_map_lookup_elem(&stacks, &slot);
    if (!s || !to || n > SYS_STACK_DEPTH ||
        __sync_val_compare_and_swap(&to->state, SYS_STACK_FREE, SYS_STACK_WRITTEN) != SYS_STACK_FREE)
        return 0;
    bpf_probe_read_kernel(&to->frames, n * sizeof(*to->frames.ip), &s->frames);
    to->n = n;
    to->hash = hash;
    __sync_lock_test_and_set(&to->state, SYS_STACK_READY);
    return 1;
}

/* Returns whether the stack is in this slot, or was put there. */
GLOBAL __u32 stack_in(__u32 slot, __u32 level, __u32 n, __u64 hash)
{
    const volatile struct sys_stack *have = bpf_map_lookup_elem(&stacks, &slot);
    if (!have)
        return 0;
    __u32 state = have->state;
    if (state == SYS_STACK_FREE && stack_put(slot, level, n, hash))
        return 1;
    if (state != SYS_STACK_READY)
        state = stack_wait_state(slot);
    return state == SYS_STACK_READY && have->hash == hash && stack_same(slot, level, n);
}

/* Returns the number of the stack in the scratch, of n frames; below 0: no room, which is counted. */
GLOBAL int stack_number(__u32 level, __u32 n)
{
    __u64 hash = stack_hash(level, n);
    for (__u32 i = 0; i < STACK_PROBES; i++) {
        __u32 slot = (hash + i) & (config.stack_slots - 1);
        if (stack_in(slot, level, n, hash))
            return (int)slot;
    }
    count(SYS_STACKS_FULL);
    return -KERNEL_ENOSPC;
}

#if defined(__TARGET_ARCH_x86)
#define USER_CODE_64 0x33 /* cs of programs of 64 bits */

/* Reads bytes of the user's stack from a frame on, up to the end of the page: the next page may be missing.
 * Returns 0 if this one is. */
GLOBAL __u32 stack_read(__u32 level, __u64 frame)
{
    struct stack_scratch *s = bpf_map_lookup_elem(&stack_scratch, &level);
    __u64 bytes = PAGE - (frame & (PAGE - 1));
    if (bytes > STACK_CHUNK)
        bytes = STACK_CHUNK;
    if (bytes < STACK_LINK)
        bytes = STACK_LINK;
    if (!s || frame < PAGE || bpf_probe_read_user(s->chunk, bytes, (const void *)frame))
        return 0;
    return bytes;
}

/*
 * Gets the current task's user stack by frame pointers: the same frames as perf's walk. Returns 0: it has
 * none, or is a 32-bit program. One read usually contains several frames.
 */
GLOBAL __u32 stack_walk(__u32 level)
{
    struct stack_scratch *s = bpf_map_lookup_elem(&stack_scratch, &level);
    const struct task_struct *task = bpf_get_current_task_btf();
    const struct pt_regs *regs = (const void *)bpf_task_pt_regs((void *)task);
    __u32 n = 1;
    if (!s || task->flags & KERNEL_PF_KTHREAD || !task->mm || regs->cs != USER_CODE_64)
        return 0;
    __u64 frame = regs->bp, from = 0, bytes = 0;
    s->frames.ip[0] = regs->ip;
    for (; n < SYS_STACK_DEPTH; n++) {
        __u64 at = frame - from;
        if (at >= bytes || bytes - at < STACK_LINK) {
            from = frame;
            bytes = stack_read(level, frame);
            at = 0;
        }
        if (bytes < STACK_LINK || at > STACK_CHUNK - STACK_LINK)
            break;
        s->frames.ip[n] = *(const __u64 *)(s->chunk + at + 8);
        frame = *(const __u64 *)(s->chunk + at);
    }
    return n;
}
#else
GLOBAL __u32 stack_walk(__u32 level)
{
    return 0;
}
#endif

/*
 * Returns a level that is not in use, reserved until the caller clears `busy`; STACK_LEVELS: there is none.
 */
GLOBAL __u32 stack_level(void)
{
    for (__u32 level = 0; level < STACK_LEVELS; level++) {
        __u32 index = level;
        struct stack_scratch *s = bpf_map_lookup_elem(&stack_scratch, &index);
        if (s && !__sync_lock_test_and_set(&s->busy, 1))
            return level;
    }
    return STACK_LEVELS;
}

static __always_inline int stack_take(void *ctx, struct stack_scratch *s, __u32 level, __u64 flags)
{
    __u32 n = flags & BPF_F_USER_STACK ? stack_walk(level) : 0;
    if (n)
        return stack_number(level, n);
    long bytes = bpf_get_stack(ctx, &s->frames, sizeof(s->frames), flags);
    if (bytes > 0)
        return stack_number(level, bytes / sizeof(*s->frames.ip));
    if (flags & BPF_F_USER_STACK)
        return SYS_NO_STACK; /* a thread of the kernel has none */
    count(SYS_STACK_FAILED);
    return -KERNEL_EFAULT;
}

static __always_inline int stack_now(void *ctx, __u64 flags)
{
    __u32 level = stack_level();
    struct stack_scratch *s = bpf_map_lookup_elem(&stack_scratch, &level);
    if (!s) {
        count(SYS_STACK_FAILED);
        return -KERNEL_EFAULT;
    }
    int number = stack_take(ctx, s, level, flags);
    s->busy = 0;
    return number;
}

#endif
