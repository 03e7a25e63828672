/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_CHROME_H
#define VIEW_CHROME_H

/*
 * A trace in the Trace Event Format of Chrome (JSON), which ui.perfetto.dev and chrome://tracing read. Slices of the
 * thread where they happened: calls of the allocator, spans of the program (ALLIUM_SPAN), page faults, reclaim, calls
 * that change mappings, and time off the CPU. Instants: the program's other events, and those of its life. Counters of
 * each process: live bytes and resident memory.
 *
 * The trace is read twice: the first time to learn what fits into the file. Spans of the program that cross others are
 * tracks of their own, as slices of a thread must nest.
 *
 * Runs in: the tool. Threads: one at a time. Owns: its tables, until chrome_free().
 */

#include "model/profile/profile.h"
#include "model/trace/event_query.h"
#include "model/trace/event_spans.h"
#include "view/formats/chrome_budget.h"
#include "view/text/sink.h"

#define CHROME_MOST_BYTES UINT64_C(100000000)

struct chrome;

struct chrome_options {
    const struct event_class *const *classes; /* all of the trace */
    size_t n_classes;
    event_place_fn *place;
    void *place_arg;
    const struct profile *names; /* of processes and threads */
    const char *exporter;        /* "allium@0.1.0" */
    uint64_t most_bytes;         /* of the file, before compression */
};

struct chrome_counts {
    uint64_t slices, instants, counters; /* that were written */
    struct chrome_left_out left;
    struct span_counts missing;
    bool has_begin; /* calls have durations */
};

/** The options and what they point to must stay as long as this. */
struct chrome *chrome_new(const struct chrome_options *o);
void chrome_free(struct chrome *c); /* NULL is allowed */
/** Begins the second reading, which writes to `out`. */
void chrome_begin(struct chrome *c, struct sink *out);
/** Takes the next event: all of the trace in their order, before and again after chrome_begin(). */
void chrome_event(struct chrome *c, const struct trace_event *e);
/** Ends the file. */
struct chrome_counts chrome_end(struct chrome *c);

#endif
