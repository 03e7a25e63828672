/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUN_EVENT_TIMES_H
#define RUN_EVENT_TIMES_H

/*
 * The times of the events in the rings of a process image, whatever their clock (enum ring_clock).
 *
 * Runs in: the tool. Threads: any. Owns: nothing.
 */

#include "collect/trace/ring_image.h"
#include "collect/trace/tick_clock.h"

/** Returns `clock` if it converts the times of these rings; NULL: they are in ns, or numbers. */
static inline const struct tick_clock *event_times_clock(const struct ring_reader *r,
                                                         const struct tick_clock *clock)
{
    const uint32_t kind = ring_reader_header(r)->clock;
    return ring_clock_has_ticks(kind) ? clock : NULL;
}

/** Returns the time, or the number after `began_ns`, that an event of the image would have now. */
uint64_t event_times_now(const struct ring_reader *r, const struct tick_clock *clock, uint64_t began_ns);

/* From the first event of a trace to the last one. */
struct event_span {
    uint64_t first_ns, last_ns; /* 0: no event yet */
};
/**
 * Extends the span by a piece that was read at `now_ns`. Up to one second, the span is exact. A longer span, and that
 * of rings without times, ends at `now_ns`, shortly after the last event.
 */
void event_times_add(struct event_span *s, const struct ring_reader *r, const struct ring_piece *p,
                     const struct tick_clock *clock, uint64_t now_ns);

#endif
