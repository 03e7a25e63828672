/* SPDX-License-Identifier: BSD-2-Clause */
#include "bpf/sys.bpf.h" /* which includes this where its parts have what they need */

#ifndef BPF_SAMPLE_BPF_H
#define BPF_SAMPLE_BPF_H

/*
 * Samples of user stacks (--sample), for code without frame pointers. One event of so many copies the
 * program's registers and the bytes of its stack. Samples go into a ring of their own before the event does,
 * so that the reader of the event has them.
 *
 * Runs in: the kernel. A part of sys.bpf.h.
 */

/* A sample is prepared here and then copied: room in a ring must be reserved in one piece, of a constant
 * size. */
struct sample_room {
    __u32 busy;       /* an event inside an event would overwrite it */
    __u32 at, chosen; /* counter of events, and which one of them is sampled */
    struct sys_sample head;
    unsigned char bytes[SYS_SAMPLE_BYTES];
};

/* One for each CPU. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __uint(key_size, sizeof(__u32));
    __uint(value_size, sizeof(struct sample_room));
} sample_rooms SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 4096);
} samples SEC(".maps");

/* distance from the end of a signal stack to the place where its frame describes it, when last seen */
__u32 signal_depth = 0;

/* Where the kernel writes a signal's frame: x86-64's struct ucontext, from uc_stack on. */
#define UC_STACK_ALIGN 16u
#define UC_STACK_RSP   (24 + 8 * 15)
#define SIGNAL_DEPTH   12288u /* registers of floating point lie above */

struct signal_stack {
    __u64 from;
    __u32 flags, reserved;
    __u64 bytes;
};

/* One of each config.sample events is sampled, and each is equally likely: the number is drawn anew each
 * time, so no periodic pattern is missed. */
static __always_inline bool its_turn(struct sample_room *r)
{
    if (!r->at)
        r->chosen = config.sample > 1 ? bpf_get_prandom_u32() % config.sample : 0;
    bool taken = r->at == r->chosen;
    r->at = r->at + 1 < config.sample ? r->at + 1 : 0;
    return taken;
}

static __always_inline struct sample_room *sample_room_now(void)
{
    __u32 cpu = bpf_get_smp_processor_id();
    return bpf_map_lookup_elem(&sample_rooms, &cpu);
}

/*
 * Copies the bytes from a run's beginning to `end`, page by page, behind those copied already. A page that
 * was never touched, or is swapped out, is left out; later pages may exist.
 */
GLOBAL __u32 take_run(__u32 used, __u32 which, __u64 end)
{
    struct sample_room *r = sample_room_now();
    if (!r)
        return 0;
    struct sys_run *run = &r->head.run[which & (SYS_SAMPLE_RUNS - 1)];
    __u64 address = run->from;
    __u32 begin = used, good = used, missing = 0;
    for (__u32 i = 0; i <= SYS_SAMPLE_PAGES && address < end; i++) {
        __u64 n = PAGE - (address & (PAGE - 1)), to = used;
        barrier_var(to);
        if (to > SYS_SAMPLE_BYTES - PAGE)
            break;
        if (bpf_probe_read_user(r->bytes + to, n, (const void *)address))
            missing |= 1u << i;
        else
            good = to + n;
        used = to + n;
        address += n;
    }
    run->missing = missing;
    run->bytes = good - begin;
    if (end - run->from < run->bytes) /* the last page is the one with the end */
        run->bytes = end - run->from;
    return begin + run->bytes;
}

/*
 * Returns an upper bound for the end of the stack, if one is known: the place of the arguments, written by
 * the kernel; or a thread's own data, which glibc and musl put behind its stack.
 */
static __always_inline __u64 stack_end(const struct task_struct *task, __u64 sp)
{
    __u64 end = sp + SYS_SAMPLE_BYTES;
    __u64 arguments = BPF_CORE_READ(task, mm, start_stack), own = BPF_CORE_READ(task, thread.fsbase);
    if (arguments > sp && arguments < end)
        end = arguments;
    if (own > sp && own < end)
        end = own;
    return end;
}

/* Returns the stack pointer that a signal interrupted, if the signal's frame lies at that depth; 0: it does
 * not. */
GLOBAL __u64 signal_at(__u64 from, __u64 bytes, __u32 depth)
{
    const __u64 at = ((from + bytes) & ~(__u64)(UC_STACK_ALIGN - 1)) - depth;
    struct signal_stack s;
    __u64 sp = 0;
    if (bpf_probe_read_user(&s, sizeof(s), (const void *)at) || s.from != from || s.bytes != bytes)
        return 0;
    signal_depth = depth;
    /* 0, if it lies on the next page and that is gone: then the other stack is not taken, as of one without a
     * signal. */
    bpf_probe_read_user(&sp, sizeof(sp), (const void *)(at + UC_STACK_RSP));
    return sp;
}

/* In two loops, because the verifier walks through each step: this makes 24 and 32 steps, not 768. */
#define SIGNAL_STEPS 32u

GLOBAL __u64 signal_below(__u64 from, __u64 bytes, __u32 depth)
{
    __u64 sp = 0;
    for (__u32 i = 1; i <= SIGNAL_STEPS && !sp; i++)
        sp = signal_at(from, bytes, depth + i * UC_STACK_ALIGN);
    return sp;
}

/* Like the function above at any depth: first where the last one was, else searched from the end of the
 * stack. */
static __always_inline __u64 interrupted_sp(__u64 from, __u64 bytes)
{
    const __u32 steps = SIGNAL_STEPS * UC_STACK_ALIGN;
    __u64 sp = signal_at(from, bytes, signal_depth);
    for (__u32 depth = 0; depth < SIGNAL_DEPTH && !sp; depth += steps)
        sp = signal_below(from, bytes, depth);
    return sp;
}

#define RED_ZONE 128u /* bytes below the stack pointer that code may use (ABI) */

static __attribute__((noinline)) __u32 take_stacks(struct sample_room *r, __u64 sp)
{
    const struct task_struct *task = (const void *)bpf_get_current_task();
    __u64 from = BPF_CORE_READ(task, sas_ss_sp), bytes = BPF_CORE_READ(task, sas_ss_size), other = 0;
    __u64 end = stack_end(task, sp);
    if (UNLIKELY(bytes && sp - from < bytes)) {
        end = from + bytes;
        other = interrupted_sp(from, bytes);
    }
    r->head.arguments = BPF_CORE_READ(task, mm, start_stack);
    r->head.run[0].from = sp - RED_ZONE;
    __u32 used = take_run(0, 0, end);
    r->head.run[1].from = other ? other - RED_ZONE : 0;
    r->head.run[1].bytes = 0;
    r->head.run[1].missing = 0;
    return other ? take_run(used, 1, stack_end(task, other)) : used;
}

/* Copies the registers in DWARF order. Returns false if it is not a 64-bit program. */
static __always_inline bool take_registers(__u64 *to)
{
#if defined(__TARGET_ARCH_x86)
    const struct pt_regs *regs = (const void *)bpf_task_pt_regs(bpf_get_current_task_btf());
#define TAKE(number, name) to[number] = BPF_CORE_READ(regs, name)
    TAKE(0, ax), TAKE(1, dx), TAKE(2, cx), TAKE(3, bx), TAKE(4, si), TAKE(5, di), TAKE(6, bp), TAKE(7, sp);
    TAKE(8, r8), TAKE(9, r9), TAKE(10, r10), TAKE(11, r11), TAKE(12, r12), TAKE(13, r13), TAKE(14, r14);
    TAKE(15, r15), TAKE(16, ip);
#undef TAKE
    return BPF_CORE_READ(regs, cs) == 0x33;
#else
    return false;
#endif
}

static __attribute__((noinline)) bool sample_take(struct sample_room *r, __u32 number)
{
    r->head.time_ns = bpf_ktime_get_ns();
    r->head.pid = current_ids() >> 32;
    r->head.number = number;
    if (!take_registers(r->head.regs))
        return false;
    __u64 bytes = take_stacks(r, r->head.regs[7]);
    barrier_var(bytes);
    if (bytes > SYS_SAMPLE_BYTES)
        return false;
    __u64 flags = wake_flags(&samples, bpf_ringbuf_query(&samples, BPF_RB_RING_SIZE) / 4);
    return !bpf_ringbuf_output(&samples, &r->head, sizeof(r->head) + bytes, flags);
}

static __attribute__((noinline)) int sample_now(void)
{
    struct sample_room *r = sample_room_now();
    if (!r || !its_turn(r))
        return SYS_STACK_NOT_SAMPLED;
    __u32 number = __sync_fetch_and_add(&state.samples, 1) & (SYS_SAMPLE_NUMBERS - 1);
    const struct task_struct *task = (const void *)bpf_get_current_task();
    bool taken = false;
    if (BPF_CORE_READ(task, flags) & KERNEL_PF_KTHREAD || !BPF_CORE_READ(task, mm))
        return SYS_STACK_SAMPLED | SYS_STACK_OF_KERNEL | number;
    if (!__sync_lock_test_and_set(&r->busy, 1)) {
        taken = sample_take(r, number);
        r->busy = 0;
    }
    if (!taken)
        count(SYS_SAMPLE_LOST);
    return SYS_STACK_SAMPLED | number;
}

#endif
