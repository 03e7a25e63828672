/* SPDX-License-Identifier: BSD-2-Clause */
/* Mechanisms in the source of the program: a call, a branch, a nop that becomes a jump. */
#include "bench/hooks/bench_mechanism.h"
#include "bench/hooks/bench_switch.h"

static uint32_t is_on;

BENCH_BARE(bare)

static BENCH_CODE uint64_t work_called(uint64_t x)
{
    bench_hook((void *)work_called, BENCH_CALLER);
    BENCH_WORK(x);
    return x;
}
BENCH_LOOP(loop_called, work_called(i))
BENCH_MECHANISM(none) = {"none", bare, loop_called, NULL, 1, NULL};

static BENCH_CODE uint64_t work_branch(uint64_t x)
{
    if (unlikely(load_relaxed(&is_on)))
        bench_hook((void *)work_branch, BENCH_CALLER);
    BENCH_WORK(x);
    return x;
}
BENCH_LOOP(loop_branch, work_branch(i))

static const char *begin_branch(bool on)
{
    store_relaxed(&is_on, on);
    return NULL;
}
BENCH_MECHANISM(branch) = {"branch", bare, loop_branch, begin_branch, 1, NULL, .set = bench_switch_flags};

/* Where the nop of 5 bytes is, and where the jump goes that takes its place, as in the kernel's static keys. */
extern const uintptr_t bench_nop_labels[2] __attribute__((visibility("hidden")));

static BENCH_CODE uint64_t work_nop(uint64_t x)
{
    __asm__ goto("1: .byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n\t"
                 ".pushsection .data.rel.ro, \"aw\"\n\t"
                 ".balign 8\n"
                 "bench_nop_labels: .quad 1b, %l[on]\n\t"
                 ".popsection"
                 :
                 :
                 : "memory"
                 : on);
    BENCH_WORK(x);
    return x;
on:
    bench_hook((void *)work_nop, BENCH_CALLER);
    BENCH_WORK(x);
    return x;
}
BENCH_LOOP(loop_nop, work_nop(i))

static const char *begin_nop(bool on)
{
    if (on && !bench_patch_jump((void *)bench_nop_labels[0], 0xe9, (const void *)bench_nop_labels[1]))
        return BENCH_NO_PATCH;
    return NULL;
}
BENCH_MECHANISM(nop) = {"nop", bare, loop_nop, begin_nop, 1, NULL, .set = bench_switch_jumps};
