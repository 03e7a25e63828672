// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* `allium sys brkstack`: which code grows the heap by brk(). */
#include "bpf/call.bpf.h"
#include "bpf/sys.bpf.h"

#include "bpf/brkstack.h"

SYS_TABLE(struct brkstack_key, struct brkstack_sum)

enum { NR_brk = 12, NR_brk_of_32_bits = 45 };

static __always_inline void put_key(struct brkstack_key *key, void *ctx)
{
    comm_now(key->comm);
    if (config.parts & BRKSTACK_BY_PROCESS)
        key->pid = current_ids() >> 32;
    if (config.parts & BRKSTACK_BY_STACK) {
        key->kernel_stack = kernel_stack_now(ctx);
        key->user_stack = user_stack_now(ctx);
    }
}

/* The call returns where the heap ends then, also if it has refused: the end is where it was before. */
static __always_inline int add_up(void *ctx, __u64 asked, __u64 before, __s64 result, __u64 duration_ns)
{
    const __u64 now = (__u64)result;
    struct row_key row = {0};
    put_key(&row.key, ctx);
    struct brkstack_sum *sum = row_at(&row);
    if (!sum)
        return 0;
    sum->calls++;
    if (!asked && result >= 0)
        sum->queries++;
    else if (now != asked || result < 0)
        sum->failed++;
    else if (now > before)
        sum->grown_bytes += now - before;
    else
        sum->shrunk_bytes += before - now;
    sum->duration_ns += duration_ns;
    sum->time_ns = bpf_ktime_get_ns();
    if (duration_ns)
        row_measure(sum, duration_ns);
    row_done(sum);
    return 0;
}

static __always_inline int enters(__s64 number)
{
    const struct mm_struct *mm = bpf_get_current_task_btf()->mm;
    if (call_is_of_32_bits() || !wanted())
        return 0;
    struct call_begun *c = call_enter(number);
    if (c && mm)
        c->kept[0] = mm->brk;
    return 0;
}

static __always_inline int exits(void *ctx, const struct call *call, __s64 result)
{
    if (UNLIKELY(call_is_of_32_bits()) || !wanted())
        return 0;
    struct call_begun *begun = call_exit(call->number);
    if (!begun)
        return 0;
    if (!begun->began_ns && result >= 0) {
        count(CALL_BEGUN_BEFORE);
        return 0;
    }
    /* If a seccomp filter denies a call, the kernel reports only its exit. */
    const __u64 duration_ns = begun->began_ns ? bpf_ktime_get_ns() - begun->began_ns : 0;
    const __u64 before = begun->kept[0];
    call_done(begun);
    return add_up(ctx, call->arg[0], before, result, duration_ns);
}

static __always_inline int exits_of_32_bits(void)
{
    if (call_is_of_32_bits() && wanted())
        count(CALL_OF_32_BITS);
    return 0;
}

#define PROGRAMS(way, section, registers)                                                                    \
    SEC(section "sys_enter") int BPF_PROG(way##_enter, struct pt_regs *regs, __s64 id)                       \
    {                                                                                                        \
        return id == NR_brk ? enters(id) : 0;                                                                \
    }                                                                                                        \
    SEC(section "sys_exit") int BPF_PROG(way##_exit, struct pt_regs *regs, __s64 ret)                        \
    {                                                                                                        \
        const __s64 id = registers##_number(regs);                                                           \
        if (UNLIKELY(id == NR_brk_of_32_bits))                                                               \
            return exits_of_32_bits();                                                                       \
        if (LIKELY(id != NR_brk))                                                                            \
            return 0;                                                                                        \
        const struct call call = registers(regs);                                                            \
        return exits(ctx, &call, ret);                                                                       \
    }
PROGRAMS(btf, "tp_btf/", call_of)
PROGRAMS(raw, "raw_tp/", call_read)
