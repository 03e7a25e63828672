/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/trace/trace_allocator.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/mem.h"
#include "cli/command.h"
#include "collect/trace/event_folder.h"
#include "model/trace/allocator_time.h"
#include "view/events/events_view.h"

#define EVENTS_MOST  20000000u /* a trace of as many is read in some seconds */
#define EVENTS_PROBE 100000u   /* if the first ones have no beginning of a call, the trace has none */

/* Returns whether the whole trace was read and has beginnings of calls. */
static bool read_calls(struct event_folder *t, struct event_spans *spans, struct allocator_time *calls,
                       uint64_t most)
{
    struct trace_event event;
    struct span_change change;
    struct error e = {""};
    int found = 0;
    uint64_t n = 0;
    while (n++ < most && (found = event_folder_next(t, &event, &e)) > 0) {
        event_spans_take(spans, &event, &change);
        if (change.ended)
            allocator_time_add(calls, change.ended);
        if (n == EVENTS_PROBE && !event_spans_has_begin(spans))
            return false;
    }
    return found >= 0 && event_spans_has_begin(spans);
}

static void print(const struct allocator_sums *sums, unsigned known, const struct span_counts *missing)
{
    struct buf b = BUF_INIT, lacks = BUF_INIT;
    events_view_allocator(&b, sums, known);
    command_fail(0, "%s", buf_str(&b));
    events_view_missing(&lacks, missing);
    if (lacks.len)
        command_fail(0, "%s", buf_str(&lacks));
    buf_release(&b);
    buf_release(&lacks);
}

void trace_allocator_print(const char *folder, uint64_t events)
{
    struct event_folder *t;
    struct error e = {""};
    if (event_folder_open(&t, folder, &e))
        return; /* the commands that read it say why */
    const size_t n = event_folder_classes(t);
    const struct event_class **classes = mem_array(n, sizeof(*classes));
    for (size_t i = 0; i < n; i++)
        classes[i] = event_folder_class(t, i);
    const unsigned known = allocator_time_known(classes, n);
    struct event_spans *spans = event_spans_new(classes, n);
    struct allocator_time *calls = allocator_time_new();
    const bool is_long = events > EVENTS_MOST;
    if (known && read_calls(t, spans, calls, is_long ? EVENTS_PROBE : UINT64_MAX)) {
        const struct allocator_sums sums = allocator_time_sums(calls);
        const struct span_counts missing = event_spans_counts(spans);
        if (is_long)
            command_fail(0, "allium events %s --by call tells where the allocator's time went", folder);
        else
            print(&sums, known, &missing);
    }
    allocator_time_free(calls);
    event_spans_free(spans);
    free(classes);
    event_folder_close(t);
}
