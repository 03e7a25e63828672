/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_EVENTS_VIEW_H
#define VIEW_EVENTS_VIEW_H

/*
 * Events of a trace as they are read: one line each, for people or as JSON. See allium-events(1).
 *
 * Runs in: the tool. Threads: pure. Owns: nothing.
 */

#include <stdbool.h>

#include "model/trace/allocator_time.h"
#include "model/trace/event_query.h"
#include "model/trace/event_spans.h"
#include "model/trace/trace_event.h"
#include "view/events/open_spans.h"
#include "view/text/sink.h"
#include "view/text/text.h"

struct events_view {
    struct sink *out;
    const struct text_style *style;
    bool has_numbers;  /* the times of the program's events are numbers of events (event_folder_clock()) */
    uint64_t began_ns; /* CLOCK_MONOTONIC, of the trace */
    uint64_t last_ns;  /* of the line before; 0: there is none */
    uint64_t n;        /* events so far; the caller's */
};

/** Writes the headings, or for JSON the line with the schema. */
void events_view_begin(struct events_view *v, bool json);
/** Writes a line. Events within a span of the same thread are indented. The line of an event that ends a span says how
 * long the span took. */
void events_view_line(struct events_view *v, const struct trace_event *e, const struct event_place *place,
                      const struct span_change *change);
/** Writes an object in one line. */
void events_view_json(struct events_view *v, const struct trace_event *e, const struct event_place *place,
                      const struct span_change *change);
/** Writes the last line of JSON. */
struct events_view_end {
    uint64_t lost_events, cut_packets;
    uint64_t residual_ns;          /* of the clock; 0: not known */
    int64_t wall_step_ns;          /* by which the wall clock was set */
    const struct open_spans *open; /* NULL: not known, as not all events were read */
};
void events_view_json_end(struct events_view *v, const struct events_view_end *end);

/** Appends a sentence: how long the allocator's calls took, and how much of that was spent in the parts of which the
 * trace has events (bits of enum span_part). */
void events_view_allocator(struct buf *b, const struct allocator_sums *sums, unsigned known);
/** Appends a sentence about beginnings and ends that are missing; nothing: none is. */
void events_view_missing(struct buf *b, const struct span_counts *counts);

#endif
