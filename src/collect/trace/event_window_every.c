/* SPDX-License-Identifier: BSD-2-Clause */
/* Events of which only some have times. */
#include "collect/trace/event_window_parts.h"

#define SKEW_NS 1000u /* a CPU may read the time stamp counter that much before an earlier load is done */

/* Spreads the events without times evenly between two times. */
static void spread(struct event_window *w, uint64_t from_ns, uint64_t to_ns)
{
    const uint64_t gap_ns = to_ns > from_ns ? to_ns - from_ns : 0;
    for (size_t k = 0; k < w->run.len; k++) {
        struct ring_event *e = w->run.at[k];
        e->ticks = from_ns + (uint64_t)((double)gap_ns * (double)(k + 1) / (double)(w->run.len + 1));
        e->size |= RING_FLAG_INTERPOLATED << RING_SIZE_BITS;
    }
    w->run.len = 0;
}

/* Gives times to the ring's events. Those behind the last time happened before the ring was read, or a little later. */
static void interpolate(struct event_window *w, struct window_ring *r)
{
    for (; r->untimed_piece < r->pieces.len; r->untimed_piece++, r->untimed_at = 0) {
        const struct ring_piece *p = &r->pieces.at[r->untimed_piece].p;
        bool bad;
        for (struct ring_event *e; (e = (struct ring_event *)ring_piece_event(p, &r->untimed_at, &bad));) {
            if (!e->ticks) {
                *vec_push(&w->run) = e;
                continue;
            }
            spread(w, r->timed_ns ? r->timed_ns : e->ticks, e->ticks);
            e->ticks = e->ticks > r->timed_ns ? e->ticks : r->timed_ns;
            r->timed_ns = e->ticks;
        }
    }
    spread(w, r->timed_ns ? r->timed_ns : w->until_ns, w->until_ns);
    r->timed_ns = w->until_ns > r->timed_ns ? w->until_ns : r->timed_ns;
}

static bool is_interpolated(const struct ring_event *e)
{
    return e->size >> RING_SIZE_BITS & RING_FLAG_INTERPOLATED;
}

/* Returns the earliest time at which the ring's next event may have happened. */
static uint64_t earliest_of(const struct window_ring *r, const struct ring_event *e)
{
    return is_interpolated(e) ? r->passed_ns : e->ticks - SKEW_NS;
}

/* Returns the latest time at which the event at word `at` of a piece may have happened: that of the next event with a
 * time. */
static uint64_t latest_of(const struct event_window *w, const struct window_ring *r, size_t piece,
                          uint32_t at)
{
    bool bad;
    for (; piece < r->pieces.len; piece++, at = 0)
        for (const struct ring_event *e; (e = ring_piece_event(&r->pieces.at[piece].p, &at, &bad));)
            if (!is_interpolated(e))
                return e->ticks + SKEW_NS;
    return w->until_ns;
}

static uint64_t latest_of_next(const struct event_window *w, const struct window_ring *r)
{
    return latest_of(w, r, r->judged, r->pieces.at[r->judged].at);
}

/* Returns whether the ring has an event that can take the place of `event`, and happened before `latest_ns`, the latest
 * time of `event`. */
static bool has_rival(const struct event_window *w, uint32_t ring, const struct trace_event *event,
                      uint64_t latest_ns)
{
    const struct window_ring *r = &w->rings[ring];
    for (size_t piece = r->judged; piece < r->pieces.len; piece++) {
        uint32_t at = piece == r->judged ? r->pieces.at[piece].at : 0, before = at;
        bool bad;
        for (const struct ring_event *e; (e = ring_piece_event(&r->pieces.at[piece].p, &at, &bad));
             before = at) {
            if (!is_interpolated(e) && e->ticks + SKEW_NS >= latest_ns)
                return false;
            const struct trace_event other = event_window_event(w, ring, e);
            if (event_order_are_rivals(event, &other))
                return latest_of(w, r, piece, before) < latest_ns;
        }
    }
    return false;
}

static bool is_settled(const struct event_window *w, const struct window_ring *r, bool is_end)
{
    return is_end || r->pieces.at[r->judged].round < w->round;
}

/* Makes the ring's next event the next one of all rings. Its time becomes no lower than that of the event before; an
 * interpolated time becomes no higher than `most_ns`, unless that is lower still. Events of different rings get
 * different times, so that a reader of the trace sees this order. */
static void pass(struct event_window *w, uint32_t ring, uint64_t most_ns, uint64_t began_ns)
{
    struct window_ring *r = &w->rings[ring];
    struct ring_event *e = (struct ring_event *)event_window_next(r);
    const struct trace_event event = event_window_event(w, ring, e);
    const uint64_t least_ns = w->passed_ns + (ring != w->passed_ring);
    if (is_interpolated(e) && e->ticks > most_ns)
        e->ticks = most_ns;
    if (e->ticks < least_ns) {
        e->ticks = least_ns;
        e->size |= is_interpolated(e) ? 0 : RING_FLAG_LATER << RING_SIZE_BITS;
    }
    w->passed_ns = r->passed_ns = e->ticks;
    w->passed_ring = ring;
    event_order_pass(w->order, &event);
    event_window_take_next(w, ring, e, began_ns);
}

enum before { NONE_BEFORE, ONE_PASSED, NOT_READ_YET };

/* The next event of `ring` may have to wait for one of another ring: passes the earliest one that may have happened
 * before it. `rivals`: looks only at rings with an event that can take its place (has_rival()). */
static enum before pass_before(struct event_window *w, uint32_t ring, bool rivals, bool is_end,
                               uint64_t began_ns)
{
    const struct trace_event waits = event_window_event(w, ring, event_window_next(&w->rings[ring]));
    const uint64_t latest_ns = latest_of_next(w, &w->rings[ring]), now_ns = waits.time_ns;
    uint32_t found = w->o.rings;
    uint64_t first_ns = UINT64_MAX;
    for (uint32_t k = 0; k < w->o.rings; k++) {
        struct window_ring *r = &w->rings[k];
        const struct ring_event *e = event_window_next(r);
        if (k == ring || !e || e->ticks >= first_ns || earliest_of(r, e) > latest_ns ||
            (rivals && !has_rival(w, k, &waits, latest_ns)))
            continue;
        const struct trace_event event = event_window_event(w, k, e);
        if (event_order_turn(w->order, &event, true) == EVENT_ORDER_NOT_YET)
            continue;
        found = k;
        first_ns = e->ticks;
    }
    if (found == w->o.rings)
        return NONE_BEFORE;
    if (!is_settled(w, &w->rings[found], is_end))
        return NOT_READ_YET;
    pass(w, found, now_ns, began_ns);
    return ONE_PASSED;
}

void event_window_interpolate(struct event_window *w, bool is_end, uint64_t began_ns)
{
    for (uint32_t ring = 0; ring < w->o.rings; ring++)
        interpolate(w, &w->rings[ring]);
    for (;;) {
        uint64_t until = UINT64_MAX;
        const uint32_t ring = event_window_earliest(w, &until);
        if (ring == w->o.rings || !is_settled(w, &w->rings[ring], is_end))
            break;
        const struct trace_event event = event_window_event(w, ring, event_window_next(&w->rings[ring]));
        const bool waits = event_order_turn(w->order, &event, true) == EVENT_ORDER_NOT_YET;
        enum before before = NONE_BEFORE;
        if (waits || event_order_has_rivals(w->order, &event))
            before = pass_before(w, ring, !waits, is_end, began_ns);
        if (before == NOT_READ_YET)
            break;
        if (before == NONE_BEFORE)
            pass(w, ring, UINT64_MAX, began_ns);
    }
    w->round++;
}
