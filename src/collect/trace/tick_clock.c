/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/trace/tick_clock.h"

#include <time.h>

#include "base/sigsafe/clock_ns.h"

#define TRIES 16

struct tick_anchor tick_clock_anchor(void)
{
    struct tick_anchor best = {.width_ticks = UINT64_MAX};
    for (int k = 0; k < TRIES; k++) {
        const uint64_t before = __builtin_ia32_rdtsc(), ns = clock_ns(CLOCK_MONOTONIC),
                       after = __builtin_ia32_rdtsc();
        if (after - before < best.width_ticks)
            best = (struct tick_anchor){before + (after - before) / 2, ns, after - before};
    }
    return best;
}

static double rate_between(struct tick_anchor a, struct tick_anchor b)
{
    return (double)(b.ns - a.ns) / (double)(b.ticks - a.ticks);
}

void tick_clock_init(struct tick_clock *c, struct tick_anchor first, struct tick_anchor second)
{
    *c = (struct tick_clock){.first = first,
                             .last = second,
                             .base_ticks = second.ticks,
                             .base_ns = (double)second.ns,
                             .ns_per_tick = rate_between(first, second)};
}

/*
 * Chooses the rate at which the present error is gone when the next anchor comes, if the time until then is as long as
 * the time between the last anchor and this one.
 */
void tick_clock_add(struct tick_clock *c, struct tick_anchor a)
{
    const double reached = c->base_ns + (double)(a.ticks - c->base_ticks) * c->ns_per_tick;
    const double rate = rate_between(c->first, a), error = (double)a.ns - reached;
    const double step_ns = (double)(a.ns - c->last.ns);
    c->base_ticks = a.ticks;
    c->base_ns = reached;
    c->ns_per_tick = step_ns > 0 ? rate * (1 + error / step_ns) : rate;
    c->last = a;
}

uint64_t tick_clock_ns(const struct tick_clock *c, uint64_t ticks)
{
    return (uint64_t)(c->base_ns + ((double)ticks - (double)c->base_ticks) * c->ns_per_tick);
}
