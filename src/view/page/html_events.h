/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_HTML_EVENTS_H
#define VIEW_HTML_EVENTS_H

/*
 * The events of a trace as the data of a page: for each step of time the number of events of each name and the live
 * bytes, of all events that match the query; and the events one by one, as `allium events --json` writes them. Of a
 * large trace the page has the longest spans and the last events. Spans that have not ended, and losses, are in
 * html_marks.h.
 *
 * The trace is read twice: the first time to learn how long it is, and which spans are the longest.
 *
 * Runs in: the tool. Threads: one at a time. Owns: copies of the events that the page has, until html_events_free().
 */

#include "model/profile/profile.h"
#include "model/trace/event_losses.h"
#include "model/trace/event_query.h"
#include "view/page/page_blob.h"

#define HTML_EVENTS_MOST       20000u              /* events one by one */
#define HTML_EVENTS_MOST_BYTES (UINT64_C(8) << 20) /* of their JSON, before compression */
#define HTML_EVENTS_STEPS      300u                /* of time, at most */

struct html_events;

struct html_events_options {
    const struct event_class *const *classes; /* all of the trace; needed until the last event is taken */
    size_t n_classes;
    event_place_fn *place;
    void *place_arg;
    const struct profile *names; /* of processes and threads */
    const char *folder;          /* of the trace */
    const char *filter;          /* the query that chooses events, in words; NULL: none */
    bool asks_age;               /* the query does, and events have none */
    bool has_numbers;            /* the times of the program's events are numbers of events */
    /* A span of CLOCK_REALTIME: later than from_ns, up to to_ns. The page has the events in it. 0 and UINT64_MAX: all
     * events of the trace. */
    uint64_t from_ns, to_ns;
    uint64_t most_bytes; /* at most HTML_EVENTS_MOST_BYTES */
};

/** `names` must stay as long as this. */
struct html_events *html_events_new(const struct html_events_options *o);
void html_events_free(struct html_events *h); /* NULL is allowed */
/** Takes the next event. Call it with all events in their order, from the first of the trace to the end of the span.
 * `is_kept`: the event matches the query, or there is no query; the page has no other events. */
void html_events_take(struct html_events *h, const struct trace_event *e, bool is_kept);
/** Begins the second reading. */
void html_events_again(struct html_events *h);
/** Ends the second reading, and chooses the events that the page has. `losses`: events that were lost while the trace
 * was recorded. */
void html_events_end(struct html_events *h, const struct event_losses *losses);
/** Appends a sentence that says how many of the events the page has. */
void html_events_note(const struct html_events *h, struct buf *text);
/** Adds "events". */
void html_events_add(const struct html_events *h, struct page_blob *b);

#endif
