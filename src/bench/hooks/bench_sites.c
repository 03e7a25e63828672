/* SPDX-License-Identifier: BSD-2-Clause */
/* Code that others attach to from outside (bench_catalogue.h): the program itself calls no sink. */
#include <sys/syscall.h>

#include "base/sigsafe/syscall.h"
#include "base/sigsafe/usdt.h"
#include "bench/hooks/bench_mechanism.h"
#include "bench/hooks/bench_switch.h"

BENCH_BARE(bare)

/* A function whose first instruction is `code`, and its mechanism; many: further sites of its kind, or NULL. */
#define SITE(name, text, code, many)                                                                         \
    __asm__(".text\n"                                                                                        \
            ".balign 64\n"                                                                                   \
            ".globl bench_site_" #name "\n"                                                                  \
            ".type bench_site_" #name ", @function\n"                                                        \
            "bench_site_" #name ":\n\t" code "\n\t"                                                          \
            "ret\n"                                                                                          \
            ".size bench_site_" #name ", . - bench_site_" #name "\n");                                       \
    uint64_t bench_site_##name(uint64_t x) __attribute__((visibility("hidden")));                            \
    BENCH_LOOP(loop_##name, bench_site_##name(i))                                                            \
    BENCH_MECHANISM(name) = {text, bare, loop_##name, NULL, 1, (const void *)bench_site_##name, many}

SITE(uprobe_nop, "uprobe-nop", "nop\n\tmovq %rdi, %rax", bench_switch_nops);
SITE(uprobe_push, "uprobe-push", "push %rbp\n\tmovq %rdi, %rax\n\tpop %rbp", NULL);
SITE(uprobe_step, "uprobe-step", "test %rdi, %rdi\n\tmovq %rdi, %rax", NULL);
SITE(usdt, "usdt", USDT_SITE("allium_bench", "hit", "8@%rdi") "\tmovq %rdi, %rax", bench_switch_probes);
SITE(uretprobe, "uretprobe", "nop\n\tmovq %rdi, %rax", NULL);

/* The system call is part of the figure: without the tracepoint it takes another way, also where no event is wanted. */
BENCH_LOOP(loop_empty, BENCH_WORK(i))
BENCH_LOOP(loop_getppid, sys_call(SYS_getppid, 0))
BENCH_MECHANISM(tracepoint) = {"tracepoint", loop_empty, loop_getppid, NULL, 1, NULL};

/* On the kernel's function of a system call. The call without it is another one that does as little. */
BENCH_LOOP(loop_getpid, sys_call(SYS_getpid, 0))
BENCH_MECHANISM(kprobe) = {"kprobe", loop_getpid, loop_getppid, NULL, 1, NULL};
BENCH_MECHANISM(kernel_fentry) = {"kernel-fentry", loop_getpid, loop_getppid, NULL, 1, NULL};
