/* SPDX-License-Identifier: BSD-2-Clause */
/* int3: one byte of code, which the kernel turns into SIGTRAP. */
#include <signal.h>
#include <ucontext.h>

#include "bench/hooks/bench_mechanism.h"
#include "bench/hooks/bench_switch.h"

extern const uintptr_t bench_trap_labels[1] __attribute__((visibility("hidden")));

BENCH_BARE(bare)

static BENCH_CODE uint64_t work_trapped(uint64_t x)
{
    __asm__ volatile("1: nop\n\t"
                     ".pushsection .data.rel.ro, \"aw\"\n\t"
                     ".balign 8\n"
                     "bench_trap_labels: .quad 1b\n\t"
                     ".popsection"
                     :
                     :
                     : "memory");
    BENCH_WORK(x);
    return x;
}
BENCH_LOOP(loop_trapped, work_trapped(i))

/* The instruction pointer is behind the int3, where the program goes on. */
static void catch_trap(int number, siginfo_t *info, void *context)
{
    const ucontext_t *c = context;
    (void)number;
    (void)info;
    bench_hook((void *)c->uc_mcontext.gregs[REG_RIP], *(void **)c->uc_mcontext.gregs[REG_RSP]);
}

static const char *begin(bool on)
{
    static const uint8_t int3 = 0xcc;
    struct sigaction action = {.sa_sigaction = catch_trap, .sa_flags = SA_SIGINFO};
    if (!on)
        return NULL;
    if (sigaction(SIGTRAP, &action, NULL))
        return "the program may not handle SIGTRAP";
    return bench_patch((void *)bench_trap_labels[0], &int3, 1) ? NULL : BENCH_NO_PATCH;
}
BENCH_MECHANISM(int3) = {"int3", bare, loop_trapped, begin, 1, NULL, .set = bench_switch_traps};
