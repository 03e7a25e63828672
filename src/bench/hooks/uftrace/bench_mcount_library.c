/* SPDX-License-Identifier: BSD-2-Clause */
/* A library that is compiled with -pg: mcount() is called at the entry of its function, libc's or that of uftrace. */
#include "bench/hooks/bench_mechanism.h"

#define PLAIN __attribute__((no_instrument_function))

void bench_mcount_loop(uint64_t calls) PLAIN;
void bench_mcount_bare_loop(uint64_t calls) PLAIN;

static BENCH_CODE uint64_t work_counted(uint64_t x)
{
    BENCH_WORK(x);
    return x;
}
BENCH_LOOP(loop, work_counted(i))
BENCH_BARE(bare)

void bench_mcount_loop(uint64_t calls)
{
    loop(calls);
}

void bench_mcount_bare_loop(uint64_t calls)
{
    bare(calls);
}
