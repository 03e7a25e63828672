/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BENCH_MECHANISM_H
#define BENCH_MECHANISM_H

/*
 * For sources that define mechanisms: one function or more with the mechanism, and a loop that calls it. The functions
 * do the same otherwise as those without.
 *
 * Runs in: the helper of `allium bench`.
 */

#include <stddef.h>

#include "base/sigsafe/atomic.h"
#include "base/sigsafe/compiler.h"
#include "bench/hooks/bench_hook.h"

/* Functions and loops begin at a line of the cache, so that they do not differ by where they happen to lie. */
#if defined(__clang__)
#define BENCH_CODE __attribute__((noinline, aligned(64)))
#else
#define BENCH_CODE __attribute__((noinline, noclone, aligned(64)))
#endif
#define BENCH_LOOP(name, ...)                                                                                \
    __attribute__((no_instrument_function)) static BENCH_CODE void name(uint64_t calls)                      \
    {                                                                                                        \
        for (uint64_t i = 0; i < calls; i++) {                                                               \
            __VA_ARGS__;                                                                                     \
        }                                                                                                    \
    }
/* What a function of the program does: next to nothing, and the compiler cannot know what. */
#define BENCH_WORK(x)         __asm__ volatile("" : "+r"(x) : : "memory")
#define BENCH_CALLER          __builtin_return_address(0)
#define BENCH_NO_PATCH        "the kernel does not let a program change its own code: permit execmem (SELinux)"
#define BENCH_NAME(name)      bench_mechanism_##name
#define BENCH_MECHANISM(name) const struct bench_mechanism_code BENCH_NAME(name)

/* The function without a mechanism, and its loop. */
#define BENCH_BARE(name)                                                                                     \
    static BENCH_CODE __attribute__((no_instrument_function)) uint64_t name##_work(uint64_t x)               \
    {                                                                                                        \
        BENCH_WORK(x);                                                                                       \
        return x;                                                                                            \
    }                                                                                                        \
    BENCH_LOOP(name, name##_work(i))

#define BENCH_EACH(X)                                                                                        \
    X(floor_loop)                                                                                            \
    X(floor_call)                                                                                            \
    X(floor_rdtsc)                                                                                           \
    X(floor_clock)                                                                                           \
    X(floor_step)                                                                                            \
    X(floor_syscall)                                                                                         \
    X(floor_ping_pong)                                                                                       \
    X(none)                                                                                                  \
    X(branch)                                                                                                \
    X(nop)                                                                                                   \
    X(instrument)                                                                                            \
    X(patchable)                                                                                             \
    X(mcount)                                                                                                \
    X(xray)                                                                                                  \
    X(fentry)                                                                                                \
    X(jump)                                                                                                  \
    X(jump_save)                                                                                             \
    X(plt)                                                                                                   \
    X(part_save)                                                                                             \
    X(part_save_vectors)                                                                                     \
    X(part_add)                                                                                              \
    X(part_atomic)                                                                                           \
    X(part_sequence)                                                                                         \
    X(part_copy)                                                                                             \
    X(part_trap)                                                                                             \
    X(part_write)                                                                                            \
    X(part_format)                                                                                           \
    X(part_walk)                                                                                             \
    X(part_sum_find)                                                                                         \
    X(part_sum_count)                                                                                        \
    X(part_switches)                                                                                         \
    X(int3)                                                                                                  \
    X(ptrace)                                                                                                \
    X(uprobe_nop)                                                                                            \
    X(uprobe_push)                                                                                           \
    X(uprobe_step)                                                                                           \
    X(usdt)                                                                                                  \
    X(uretprobe)                                                                                             \
    X(tracepoint)                                                                                            \
    X(kprobe)                                                                                                \
    X(kernel_fentry)

#define BENCH_DECLARE(name) extern BENCH_MECHANISM(name);
BENCH_EACH(BENCH_DECLARE)

#endif
