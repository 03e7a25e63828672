/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_EVENT_WINDOW_H
#define COLLECT_EVENT_WINDOW_H

/*
 * The latest events of an image, held until they can be judged (block_filter.h) and ordered (event_order.h). A free may
 * be read before the allocation of its block, which another CPU's ring has. So the reader notes the time, reads all
 * rings, and only then judges the events before that time, in their order: the beginning of a life is in its ring
 * before its end happens.
 *
 * Runs in: the tool. Threads: one at a time. Owns: copies of the events, until it is freed.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "collect/trace/block_filter.h"
#include "collect/trace/tick_clock.h"
#include "collect/trace/user_classes.h"
#include "ring/ring_read.h"

struct event_window;

struct event_window_options {
    const struct event_filter *filter; /* NULL: all events are kept */
    const struct user_classes *user;
    pid_t pid;
    uint64_t image_id;
    uint32_t rings;
    bool orders; /* there are no times: the events are ordered (event_order.h), and get numbers for times */
    /* only some events have times: the others get times between those, such that lives at an address do not overlap */
    bool interpolates;
    /* the times are those of the CPUs' counters: the end of a life may come before its beginning (early_frees.h) */
    bool has_ticks;
    uint64_t base_ns; /* is added to numbers that are times */
};

/** The objects to which the options point must live as long as the window. */
struct event_window *event_window_new(const struct event_window_options *o);
void event_window_free(struct event_window *w); /* NULL is allowed */

/**
 * Adds a copy of a piece, whose user events have the numbers of the trace. `clock` NULL: its times are in ns, or
 * numbers. `read_ns`: the time, or number, at which the piece was read. Returns 0, or -EBADMSG: the piece has an
 * invalid event, and is not added.
 */
int event_window_put(struct event_window *w, uint32_t ring, const struct ring_piece *p,
                     const struct tick_clock *clock, uint64_t read_ns);
/**
 * Judges the events before `until_ns`, and those with later times that it has held since the last call. `began_ns`: of
 * the trace. All are of CLOCK_MONOTONIC. Call it after a round of reading. If the window orders, call it after each
 * round; it judges what has a place in the order. UINT64_MAX: there will be no more events.
 */
void event_window_judge(struct event_window *w, uint64_t until_ns, uint64_t began_ns);
/**
 * Returns the next piece of a ring whose events are all judged, with those that are kept, and times in ns; or NULL:
 * there is none. A piece that keeps none is left out; the others are numbered from 1. The words are valid until the
 * next call.
 */
struct ring_piece *event_window_take(struct event_window *w, uint32_t ring);

/** Returns the bytes of the events that are held. */
uint64_t event_window_bytes(const struct event_window *w);
/** Returns the number of events that were judged and not kept. */
uint64_t event_window_dropped(const struct event_window *w);
/** Returns the number of events that were read before the time that they have. */
uint64_t event_window_ahead(const struct event_window *w);
/** Returns event_order_ambiguous(); 0 if the window does not order. */
uint64_t event_window_ambiguous(const struct event_window *w);

#endif
