/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A library that calls a function of its own through its PLT, so that the helper's function of that name is called.
 */
#include "bench/hooks/bench_mechanism.h"

uint64_t bench_plt_work(uint64_t x);
uint64_t bench_plt_bare(uint64_t x);
void bench_plt_loop(uint64_t calls);
void bench_plt_bare_loop(uint64_t calls);

BENCH_CODE uint64_t bench_plt_work(uint64_t x)
{
    BENCH_WORK(x);
    return x;
}

BENCH_CODE uint64_t bench_plt_bare(uint64_t x)
{
    BENCH_WORK(x);
    return x;
}

BENCH_LOOP(loop, bench_plt_work(i))
BENCH_LOOP(loop_bare, bench_plt_bare(i))

void bench_plt_loop(uint64_t calls)
{
    loop(calls);
}

void bench_plt_bare_loop(uint64_t calls)
{
    loop_bare(calls);
}
