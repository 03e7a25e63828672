/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/trace/event_times.h"

#define EXACT_NS 1000000000u

uint64_t event_times_now(const struct ring_reader *r, const struct tick_clock *clock, uint64_t began_ns)
{
    const uint64_t number = ring_reader_counter(r);
    const struct tick_anchor now = tick_clock_anchor();
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (ring_reader_header(r)->clock == RING_CLOCK_COUNTER)
        return began_ns + number + 1;
    return event_times_clock(r, clock) ? tick_clock_ns(clock, now.ticks) : now.ns;
}

void event_times_add(struct event_span *s, const struct ring_reader *r, const struct ring_piece *p,
                     const struct tick_clock *clock, uint64_t now_ns)
{
    const uint32_t kind = ring_reader_header(r)->clock;
    uint32_t at = 0;
    bool bad;
    if (kind == RING_CLOCK_COUNTER || kind == RING_CLOCK_NONE || s->last_ns - s->first_ns > EXACT_NS) {
        s->first_ns = s->first_ns ? s->first_ns : now_ns;
        s->last_ns = now_ns;
        return;
    }
    for (const struct ring_event *e; (e = ring_piece_event(p, &at, &bad));) {
        if (kind == RING_CLOCK_EVERY && !e->ticks)
            continue;
        const uint64_t ns = kind == RING_CLOCK_MONOTONIC ? e->ticks : tick_clock_ns(clock, e->ticks);
        if (!s->first_ns || ns < s->first_ns)
            s->first_ns = ns;
        if (ns > s->last_ns)
            s->last_ns = ns;
    }
}
