/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/clock.h"

#include <cpuid.h>

bool clock_is_tsc;
static uint64_t frozen_at; /* the ticks that the stopped clock shows; 0: the clock runs */
static bool was_tsc;       /* the value of clock_is_tsc before the clock was stopped */

void clock_init(void)
{
    unsigned a, b, c, d;
    /* Invariant TSC: CPUID 80000007h, EDX bit 8. */
    clock_is_tsc = __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & 1u << 8);
}

uint64_t clock_ticks_cold(void)
{
    uint64_t frozen = load_relaxed(&frozen_at);
    return frozen ? frozen : clock_ns(CLOCK_MONOTONIC);
}

bool clock_freeze(void)
{
    if (frozen_at)
        return false;
    was_tsc = clock_is_tsc;
    store_relaxed(&frozen_at, clock_ticks());
    store_release(&clock_is_tsc, false);
    return true;
}

void clock_thaw(void)
{
    store_release(&clock_is_tsc, was_tsc);
    store_relaxed(&frozen_at, 0);
}
