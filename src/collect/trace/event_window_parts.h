/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_EVENT_WINDOW_PARTS_H
#define COLLECT_EVENT_WINDOW_PARTS_H

/*
 * The parts of event_window.h: by time and by order (event_window.c), and where only some events have times
 * (event_window_every.c).
 *
 * Runs in: the tool. Threads: one at a time.
 */

#include "base/vec.h"
#include "collect/trace/event_order.h"
#include "collect/trace/event_window.h"
#include "wire/event_schema.h"

struct held {
    /* the window owns its words: kept events come first, and from `at` on there are those to judge */
    struct ring_piece p;
    uint32_t at;
    uint32_t kept_words, kept_events;
    uint64_t round; /* in which it was read */
};

struct window_ring {
    struct VEC(struct held) pieces;
    size_t taken;      /* pieces that event_window_take() has passed */
    size_t judged;     /* the piece with the next event to judge */
    uint64_t unjudged; /* words */
    uint64_t number;
    uint64_t *given; /* the words of the piece that was taken last */
    struct ring_piece out;
    /* if times are interpolated: the first event without one, and the times of the events before it, and passed */
    size_t untimed_piece;
    uint32_t untimed_at;
    uint64_t timed_ns, passed_ns;
};

struct event_window {
    struct event_window_options o;
    struct event_blocks *blocks;
    struct event_order *order;                       /* NULL: it goes by time */
    const struct event_class *classes[EVENT_ID_OWN]; /* of the agent, by number */
    struct window_ring *rings;
    uint64_t bytes, dropped, ahead;
    uint64_t round, number;              /* of readings; of events that are ordered */
    struct VEC(struct ring_event *) run; /* events without times that follow each other */
    uint64_t until_ns, passed_ns;        /* of the last round; of the last event that was passed */
    uint32_t passed_ring;
    /* the latest time of the events that came since the last judgement, and of those before it */
    uint64_t newest_ns, before_ns;
};

/** Returns the event of a ring. */
struct trace_event event_window_event(const struct event_window *w, uint32_t ring,
                                      const struct ring_event *e);
/** Returns the next event of the ring that is not judged, or NULL. */
const struct ring_event *event_window_next(struct window_ring *r);
/** Judges the ring's next event, `e`: drops or keeps it. */
void event_window_take_next(struct event_window *w, uint32_t ring, const struct ring_event *e,
                            uint64_t began_ns);
/** Returns the ring with the earliest event before *until, which becomes the time of the earliest one of the others. */
uint32_t event_window_earliest(struct event_window *w, uint64_t *until);
/**
 * Gives times to the events that have none, and judges by time. If an event must follow one of another ring, and that
 * one may have happened before it, that one is judged first. `is_end`: there will be no more events.
 */
void event_window_interpolate(struct event_window *w, bool is_end, uint64_t began_ns);

#endif
