/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/tracer/tracer_clock.h"

#include "agent/clock.h"
#include "agent/process.h"
#include "agent/tracer/tracer_options.h"
#include "agent/tracer/tracer_rings.h"
#include "base/sigsafe/atomic.h"

#define BRACKETS    16
#define FIRST_TICKS (UINT64_C(1) << 24) /* some 5 ms: the second anchor tells the rate */
#define LATER_TICKS (UINT64_C(1) << 31) /* about a second */

static uint64_t last_ticks; /* of the last anchor */
static uint64_t last_ns;    /* of CLOCK_MONOTONIC, if that is the clock */
static uint64_t narrowest; /* width of a bracket in this process or its fork parents, in ticks; 0: none yet */
static bool began_tsc;     /* clock_is_tsc when the rings were made: it changes when the clock is stopped */

enum ring_clock tracer_clock(void)
{
    const struct tracer_options *o = &tracer_options;
    return o->untimed                       ? RING_CLOCK_NONE
           : o->counts                      ? RING_CLOCK_COUNTER
           : !clock_is_tsc || o->wants_mono ? RING_CLOCK_MONOTONIC
           : o->every                       ? RING_CLOCK_EVERY
                                            : RING_CLOCK_TSC;
}

/* A clock that is stopped shows ticks of the counter (clock_freeze()), and the vdso reads the counter, too. */
uint64_t tracer_clock_ticks(void)
{
    if (tracer_options.untimed)
        return 0;
    if (tracer_options.counts)
        return atomic_fetch_add64(&tracer_ring.header->counter, 1) + 1;
    if (!tracer_options.wants_mono)
        return clock_ticks();
    if (began_tsc != clock_is_tsc)
        return load_relaxed(&last_ns);
    const uint64_t ns = clock_ns(CLOCK_MONOTONIC);
    store_relaxed(&last_ns, ns);
    return ns;
}

static bool has_anchors(void)
{
    return ring_clock_has_ticks(tracer_clock());
}

static void write_anchor(void)
{
    uint64_t ticks = 0, ns = 0, width = UINT64_MAX;
    const uint64_t known = load_relaxed(&narrowest), enough = known + known / 8;
    for (int k = 0; k < BRACKETS && width > enough; k++) {
        const uint64_t before = __builtin_ia32_rdtsc(), now = clock_ns(CLOCK_MONOTONIC),
                       after = __builtin_ia32_rdtsc();
        if (after - before < width) {
            width = after - before;
            ticks = before + width / 2;
            ns = now;
        }
    }
    if (!known || width < known)
        store_relaxed(&narrowest, width);
    ring_add_anchor(&tracer_ring, ticks, ns, width);
}

void tracer_clock_begin(void)
{
    began_tsc = clock_is_tsc;
    if (!has_anchors())
        return;
    store_relaxed(&last_ticks, clock_ticks());
    write_anchor();
}

void tracer_clock_anchor(void)
{
    if (!has_anchors() || load_relaxed(&process.ledger.sealed))
        return;
    uint64_t last = load_relaxed(&last_ticks);
    const uint64_t now = clock_ticks(), gap = tracer_ring.header->anchored < 2 ? FIRST_TICKS : LATER_TICKS;
    if (now - last >= gap && atomic_swap_if64(&last_ticks, last, now))
        write_anchor();
}
