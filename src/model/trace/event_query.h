/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_EVENT_QUERY_H
#define MODEL_EVENT_QUERY_H

/*
 * A query (--where) on the events of a trace. Its fields are event, cpu, process, thread, time (since the beginning of
 * the trace), func, file and module (of the call), and all fields of all classes of the trace by their names. A field
 * of an event that has one of these eight names is own-NAME, as in own-time. A field that an event does not have has no
 * value.
 *
 * Runs in: the tool. Threads: one at a time. Owns: the query, until event_query_free().
 */

#include <stdbool.h>

#include "base/error.h"
#include "model/trace/trace_event.h"
#include "query/query.h"

struct event_query;

/** Where an event was made, as texts; NULL: not known. */
struct event_place {
    const char *function, *file, *module;
    uint32_t line;    /* 0: not known */
    uint64_t address; /* in the module */
};
/** Finds the place of an event. */
typedef struct event_place event_place_fn(void *arg, const struct trace_event *e);

/**
 * Parses a query; a `text` of NULL matches all events. Texts and classes must stay as long as the query. Returns 0, or
 * -EINVAL with a line; in both cases the caller frees *out.
 */
int event_query_new(struct event_query **out, const char *text, const struct event_class *const *classes,
                    size_t n_classes, struct error *e);
void event_query_free(struct event_query *q); /* NULL is allowed */
/** Returns whether the query asks where an event was made: func, file or module. */
bool event_query_uses_place(const struct event_query *q);
/** Returns whether it asks for the time. */
bool event_query_uses_time(const struct event_query *q);
/** Calls query_ranges() for the field with this name, whose values are numbers. */
size_t event_query_ranges(const struct event_query *q, const char *field,
                          struct query_range out[static QUERY_RANGES_MAX]);
/** Returns whether the event matches. `began_ns`: of the trace, CLOCK_MONOTONIC. */
bool event_query_fits(const struct event_query *q, const struct trace_event *e, uint64_t began_ns,
                      event_place_fn *place, void *arg);

#endif
