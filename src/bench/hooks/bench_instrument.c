/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * -finstrument-functions, with which this file is compiled: a call when a function is entered, and one when it ends.
 */
#include "bench/hooks/bench_mechanism.h"

static uint32_t is_on;

#define PLAIN __attribute__((no_instrument_function))

void __cyg_profile_func_enter(void *function, void *caller) PLAIN;
void __cyg_profile_func_exit(void *function, void *caller) PLAIN;

void __cyg_profile_func_enter(void *function, void *caller)
{
    if (unlikely(load_relaxed(&is_on)))
        bench_hook(function, caller);
}

void __cyg_profile_func_exit(void *function, void *caller)
{
    if (unlikely(load_relaxed(&is_on)))
        bench_hook(function, caller);
}

BENCH_BARE(bare)

static BENCH_CODE uint64_t work_instrumented(uint64_t x)
{
    BENCH_WORK(x);
    return x;
}
BENCH_LOOP(loop_instrumented, work_instrumented(i))

static PLAIN const char *begin(bool on)
{
    store_relaxed(&is_on, on);
    return NULL;
}
BENCH_MECHANISM(instrument) = {"instrument-functions", bare, loop_instrumented, begin, 2, NULL};
