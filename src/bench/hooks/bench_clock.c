/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/sigsafe/clock_ns.h"
#include "bench/hooks/bench_hook.h"

const uint64_t bench_calls_most = UINT64_C(1) << 20;

uint64_t bench_now(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}
