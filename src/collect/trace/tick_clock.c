/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/trace/tick_clock.h"

#include <math.h>
#include <time.h>

#include "base/sigsafe/clock_ns.h"

#define TRIES         16
#define WAIT_LEAST_NS UINT64_C(10000000)
#define WAIT_MOST_NS  UINT64_C(1000000000)
#define DENSE_NS      UINT64_C(1000000000)
#define RATE_CHANGE   0.001 /* more than the kernel ever slews CLOCK_MONOTONIC */

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

/* How far `at` is from the line through the two others. */
static double residual_of(struct tick_anchor before, struct tick_anchor at, struct tick_anchor after)
{
    return (double)(at.ns - before.ns) - (double)(at.ticks - before.ticks) * rate_between(before, after);
}

void tick_clock_init(struct tick_clock *c, struct tick_anchor first, struct tick_anchor second)
{
    *c = (struct tick_clock){.first = first,
                             .before = first,
                             .last = second,
                             .base_ticks = second.ticks,
                             .base_ns = (double)second.ns,
                             .ns_per_tick = rate_between(first, second),
                             .ns_per_tick_before = rate_between(first, second)};
}

/* Returns whether time ran on from the last of the anchors at the rate that it has between them. */
static bool is_next(const struct tick_anchor *anchors, uint32_t n, struct tick_anchor now)
{
    const struct tick_anchor last = anchors[n - 1];
    if (now.ticks <= last.ticks || now.ns <= last.ns)
        return false;
    return n < 2 || fabs(rate_between(last, now) / rate_between(anchors[0], last) - 1) < RATE_CHANGE;
}

bool tick_clock_init_past(struct tick_clock *c, struct tick_anchor *anchors, uint32_t n,
                          struct tick_anchor now)
{
    if (n && is_next(anchors, n, now))
        anchors[n++] = now;
    *c = (struct tick_clock){.past = anchors, .n_past = n};
    return n >= 2;
}

uint64_t tick_clock_wait_ns(const struct tick_clock *c)
{
    const uint64_t known = c->last.ns - c->first.ns;
    if (c->last.ns < c->dense_until_ns || known < WAIT_LEAST_NS)
        return WAIT_LEAST_NS;
    return known < WAIT_MOST_NS ? known : WAIT_MOST_NS;
}

/* Chooses the rate at which the present error is gone when the next anchor is due, but never one that stands still. */
void tick_clock_add(struct tick_clock *c, struct tick_anchor a)
{
    if (a.ticks <= c->last.ticks || a.ns <= c->last.ns)
        return;
    const double reached = c->base_ns + (double)(a.ticks - c->base_ticks) * c->ns_per_tick;
    const double error = (double)a.ns - reached, residual = fabs(residual_of(c->before, c->last, a));
    struct tick_anchor from = c->first;
    if (residual > c->residual_ns)
        c->residual_ns = residual;
    if (residual > TICK_CLOCK_BOUND_NS || fabs(error) > TICK_CLOCK_BOUND_NS) {
        from = c->last;
        c->first = a;
        c->dense_until_ns = a.ns + DENSE_NS;
    }
    c->before = c->last;
    c->last = a;
    c->base_ticks = a.ticks;
    c->base_ns = reached;
    c->ns_per_tick_before = c->ns_per_tick;
    const double change = error / (double)tick_clock_wait_ns(c);
    c->ns_per_tick = rate_between(from, a) * (1 + (change < -0.5 ? -0.5 : change > 1 ? 1 : change));
}

uint64_t tick_clock_ns(const struct tick_clock *c, uint64_t ticks)
{
    if (c->n_past)
        return tick_clock_between(c->past, c->n_past, ticks);
    const int64_t since = (int64_t)(ticks - c->base_ticks);
    return (uint64_t)(c->base_ns + (double)since * (since < 0 ? c->ns_per_tick_before : c->ns_per_tick));
}

uint64_t tick_clock_between(const struct tick_anchor *anchors, uint32_t n, uint64_t ticks)
{
    uint32_t low = 0, high = n - 1; /* the line from anchor `low` to the next */
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (anchors[middle].ticks <= ticks)
            low = middle;
        else
            high = middle;
    }
    const struct tick_anchor a = anchors[low];
    const double ns = (double)(int64_t)(ticks - a.ticks) * rate_between(a, anchors[low + 1]);
    return a.ns + (uint64_t)(int64_t)llround(ns);
}

double tick_clock_residual(const struct tick_anchor *anchors, uint32_t n)
{
    double most = 0;
    for (uint32_t k = 1; k + 1 < n; k++)
        most = fmax(most, fabs(residual_of(anchors[k - 1], anchors[k], anchors[k + 1])));
    return most;
}
