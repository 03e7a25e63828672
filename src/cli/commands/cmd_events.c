/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/option_values.h"
#include "cli/pager.h"
#include "cli/screen_options.h"
#include "cli/terminal.h"
#include "cli/trace/event_places.h"
#include "cli/trace/events_sum.h"
#include "collect/trace/event_folder.h"
#include "collect/trace/order_doubts.h"
#include "collect/trace/tick_clock.h"
#include "model/trace/allocator_time.h"
#include "model/trace/clock_kind.h"
#include "model/trace/event_counts.h"
#include "model/trace/event_query.h"
#include "model/trace/event_spans.h"
#include "view/events/events_view.h"
#include "view/profile/common.h"
#include "view/table/table_view.h"

static const struct option_doc options[] = {
    {"where", 0, "QUERY", "only matching events: 'event:malloc size>1M', see QUERIES in allium-events(1)"},
    {"by", 0, "GROUP", "count events by event, thread or cpu; call: sum up the time in malloc, free, ..."},
    {"top", 0, "N", "print the first N events, or the N largest rows of --by; 0: all (all)"},
    {"sum", 0, "SUM", "add up EVENT[.FIELD][,by=FIELD...]: malloc.size,by=site"},
    {"histogram", 0, NULL, "with --sum, print below each row how many values each power of two has"},
    SCREEN_OPTIONS,
    {"json", 0, NULL, "print JSON: one object a line"},
    {"no-pager", 0, NULL, "print long output directly, not through $PAGER"},
    {NULL, 0, NULL, NULL},
};

static const char *const examples[] = {
    "allium events server.4711.trace",
    "print what happened, in order",
    "allium events server.4711.trace --where 'event:malloc size>1M'",
    "print large allocations, and where they were made",
    "allium events server.4711.trace --by thread",
    "count the events of each thread",
    "allium events server.4711.trace --by call",
    "sum up how long malloc, free, ... took; needs a trace with --events alloc,begin",
    "allium events server.4711.trace --sum malloc.size,by=site",
    "add up the sizes for each call of malloc",
    NULL,
};

static int run(int argc, char **argv);

const struct command command_events = {
    .name = "events",
    .usage =
        "DIR [--where QUERY] [--by event|thread|cpu|call] [--sum EVENT[.FIELD][,by=FIELD...] [--histogram]] "
        "[--top N] " SCREEN_USAGE " [--json] [--no-pager]",
    .summary = "list or count the events of a trace",
    .examples = examples,
    .options = options,
    .run = run,
};

#define BY_CALL 100 /* not of enum event_counts_group: durations of calls, not counts of events */
static const struct word groups[] = {{"event", EVENT_COUNTS_BY_EVENT},
                                     {"thread", EVENT_COUNTS_BY_THREAD},
                                     {"cpu", EVENT_COUNTS_BY_CPU},
                                     {"call", BY_CALL},
                                     {NULL, 0}};

struct request {
    const char *folder, *where;
    int group; /* -1: list */
    uint32_t top;
    struct events_sum *sum; /* NULL: list or count */
    bool json, no_pager;
};

/* Returns whether the events are listed, and not counted or added up. */
static bool is_listing(const struct request *q)
{
    return q->group < 0 && !q->sum;
}

static int parse(struct request *q, int argc, char **argv)
{
    struct arguments a;
    *q = (struct request){.group = -1};
    int code = command_parse(&command_events, argc, argv, false, &a);
    if (code >= 0)
        return code;
    if (a.n_rest != 1)
        return command_misuse(&command_events,
                              a.n_rest
                                  ? "too many folders: leave out %s"
                                  : "missing folder: allium events DIR, which allium trace has written%s",
                              a.n_rest ? a.rest[1] : "");
    q->folder = a.rest[0];
    q->where = command_value(&command_events, &a, "where");
    q->json = command_value(&command_events, &a, "json") != NULL;
    q->no_pager = command_value(&command_events, &a, "no-pager") != NULL;
    code = events_sum_new(&q->sum, &command_events, &a);
    if (code >= 0)
        return code;
    const char *by = command_value(&command_events, &a, "by");
    code = by ? option_values_parse(&command_events, "by", by, groups, &q->group) : -1;
    return code >= 0
               ? code
               : option_values_parse_top(&command_events, command_value(&command_events, &a, "top"), &q->top);
}

/* Where events go. */
struct reading {
    const struct request *q;
    struct event_folder *trace;
    const struct event_query *query;
    struct event_places *places;
    struct event_spans *spans;
    struct open_spans open;       /* of a list */
    bool is_whole;                /* all events were read */
    struct order_doubts *doubts;  /* of a list */
    struct events_view *view;     /* a list */
    struct event_counts *counts;  /* NULL: no count of events */
    struct allocator_time *calls; /* NULL: not --by call */
};

static void take_event(struct reading *r, const struct trace_event *event)
{
    struct span_change change = {.depth = 0};
    event_places_take(r->places, event);
    if (!r->counts)
        event_spans_take(r->spans, event, &change);
    open_spans_add(&r->open, &change, 0);
    if (!event_query_fits(r->query, event, r->view->began_ns, event_places_of, r->places))
        return;
    r->view->n++;
    if (!r->counts)
        event_spans_choose(r->spans);
    if (r->counts) {
        struct trace_event counted = *event;
        counted.time_ns = r->view->has_numbers ? 0 : event->time_ns; /* no rate is known */
        event_counts_add(r->counts, &counted);
    } else if (r->q->sum) {
        const struct event_place place = event_places_of(r->places, event);
        events_sum_add(r->q->sum, event, event_places_site(event), &place);
    } else if (r->calls) {
        if (change.ended)
            allocator_time_add(r->calls, change.ended);
    } else {
        const struct event_place place = event_places_of(r->places, event);
        if (r->q->json)
            events_view_json(r->view, event, &place, &change);
        else
            events_view_line(r->view, event, &place, &change);
    }
}

/* Reads all events, and lists or counts those that match. Returns 0, or -errno with a line. */
static int read_events(struct reading *r, struct error *e)
{
    struct trace_event event;
    const uint64_t most = is_listing(r->q) && r->q->top ? r->q->top : UINT64_MAX;
    int found;
    while (r->view->n < most && (found = event_folder_next(r->trace, &event, e)) != 0) {
        if (found < 0)
            return found;
        r->view->began_ns = r->view->began_ns ? r->view->began_ns : event.time_ns;
        event.doubtful = r->doubts && order_doubts_take(r->doubts, &event);
        take_event(r, &event);
    }
    if (r->view->n < most) {
        struct span_change change;
        event_spans_finish(r->spans, &change);
        open_spans_add(&r->open, &change, 0);
        open_spans_sort(&r->open);
        r->is_whole = true;
    }
    return 0;
}

static void write_table(const struct request *q, struct sink *out, struct table *t,
                        const struct text_style *style)
{
    if (q->json)
        for (uint32_t row = 0; row < table_rows(t); row++)
            table_view_json_row(out, t, row);
    else
        table_view_text(out, t, style);
    table_free(t);
}

/* The table of --by event, thread or cpu. */
static void write_counts(const struct reading *r, struct sink *out, const struct text_style *style)
{
    vec_each (const struct cpu_loss, lost, &event_folder_lost(r->trace)->by_cpu)
        event_counts_add_lost(r->counts, lost->cpu, lost->events);
    write_table(r->q, out, event_counts_table(r->counts, r->q->top), style);
}

/* The classes of all events of a trace. */
struct classes {
    const struct event_class **at;
    size_t n;
};

/* Writes the table of --by call, and a line with its totals. */
static void write_calls(const struct reading *r, struct sink *out, const struct classes *classes,
                        const struct text_style *style)
{
    const unsigned known = allocator_time_known(classes->at, classes->n);
    const struct allocator_sums sums = allocator_time_sums(r->calls);
    write_table(r->q, out, allocator_time_table(r->calls, known, r->q->top), style);
    if (r->q->json)
        return;
    struct buf b = BUF_INIT;
    events_view_allocator(&b, &sums, known);
    if (sums.calls)
        sink_printf(out, "\n%s\n", buf_str(&b));
    buf_release(&b);
}

/* Says that there are not all times, whether a clock changed its rate, or was set, and which marks a list has. */
static void note_clocks(const struct reading *r)
{
    struct buf b = BUF_INIT;
    char text[UNITS_TEXT_BYTES];
    const bool is_list = is_listing(r->q) && !r->q->json;
    const char *clock = event_folder_clock(r->trace);
    if (clock_kind_interpolates(clock) && !r->q->json)
        command_fail(0, "the trace has the times of some events (--clock %s): %s are interpolated", clock,
                     is_list ? "those with ~" : "the others");
    else if (clock && !r->q->json)
        command_fail(0, "the trace has no times (--clock %s)%s", clock,
                     !is_list                ? ""
                     : strcmp(clock, "none") ? ": NUMBER is the order of events"
                                             : ": NUMBER is a possible order of events");
    const uint64_t residual_ns = event_folder_residual_ns(r->trace);
    if (residual_ns > TICK_CLOCK_BOUND_NS)
        command_fail(0,
                     "the rate of the CPU's counter changed: events of different CPUs, or of the program and "
                     "the kernel, that are less than %s apart may be in another order%s",
                     units_format_duration(text, (double)residual_ns),
                     is_list ? ": the later one has a <" : "");
    common_wall_step(&b, event_folder_wall_step_ns(r->trace));
    if (b.len)
        command_fail(0, "%s", buf_str(&b));
    buf_release(&b);
}

/* Says what is missing. */
static void note_missing(const struct reading *r, const struct trace_losses *lost)
{
    struct buf b = BUF_INIT;
    note_clocks(r);
    const struct text_style style = terminal_style(stdout);
    const bool marked = r->q->sum && !r->q->json;
    if (lost->events)
        command_fail(0, "%llu events were lost while the trace was recorded%s%s%s",
                     (unsigned long long)lost->events, marked ? ": " : "",
                     marked ? text_at_least(&style) : "",
                     marked ? "marks lower bounds, ~ what may be too high or too low" : "");
    if (lost->cut_packets)
        command_fail(0, "the trace was cut short: the last packet of %llu files is not whole",
                     (unsigned long long)lost->cut_packets);
    const struct span_counts counts = event_spans_counts(r->spans);
    events_view_missing(&b, &counts);
    if (b.len)
        command_fail(0, "%s", buf_str(&b));
    buf_reset(&b);
    if (r->is_whole && r->doubts)
        open_spans_note(&r->open, &b, r->view->has_numbers);
    if (b.len)
        command_fail(0, "%s", buf_str(&b));
    if (r->calls && !event_spans_has_begin(r->spans))
        command_fail(
            0,
            "the trace has no beginnings of the allocator's calls%s: record it with allium trace --events "
            "alloc,begin",
            allocator_time_has_functions(r->calls) ? ", only of functions (--function)" : "");
    buf_release(&b);
}

static int show(struct reading *r, const struct classes *classes)
{
    struct error e = {""};
    const struct request *q = r->q;
    struct sink out = pager_sink(!q->no_pager && !q->json);
    const struct text_style style = terminal_style(stdout);
    const char *clock = event_folder_clock(r->trace);
    struct events_view v = {.out = &out, .style = &style, .has_numbers = clock_kind_has_numbers(clock)};
    r->view = &v;
    r->calls = q->group == BY_CALL ? allocator_time_new() : NULL;
    r->doubts = is_listing(q) ? order_doubts_new(r->trace) : NULL;
    r->counts = q->group >= 0 && !r->calls ? event_counts_new((enum event_counts_group)q->group) : NULL;
    if (!q->sum && (q->group < 0 || q->json))
        events_view_begin(&v, q->json);
    const int bad = read_events(r, &e);
    if (r->counts)
        write_counts(r, &out, &style);
    const struct trace_losses lost = event_folder_losses(r->trace);
    if (q->sum)
        events_sum_write(q->sum, lost.events, q->top, q->json, &out, &style);
    if (r->calls)
        write_calls(r, &out, classes, &style);
    if (q->json && !q->sum && !bad)
        events_view_json_end(&v,
                             &(struct events_view_end){.lost_events = lost.events,
                                                       .cut_packets = lost.cut_packets,
                                                       .residual_ns = event_folder_residual_ns(r->trace),
                                                       .wall_step_ns = event_folder_wall_step_ns(r->trace),
                                                       .open = r->is_whole && r->doubts ? &r->open : NULL});
    int code = pager_written(&out, bad ? EXIT_FAILED : EXIT_DONE);
    if (bad)
        code = command_fail(EXIT_FAILED, "%s", e.text);
    else
        note_missing(r, &lost);
    event_counts_free(r->counts);
    order_doubts_free(r->doubts);
    allocator_time_free(r->calls);
    return code;
}

static int run(int argc, char **argv)
{
    struct request q;
    struct error e = {""};
    struct event_folder *t;
    struct event_query *query;
    int code = parse(&q, argc, argv);
    if (code >= 0) {
        events_sum_free(q.sum);
        return code;
    }
    int bad = event_folder_open(&t, q.folder, &e);
    if (bad)
        events_sum_free(q.sum);
    if (bad)
        return command_fail(bad == -EINVAL ? EXIT_USAGE : EXIT_FAILED, "%s", e.text);
    struct classes classes = {.n = event_folder_classes(t)};
    classes.at = mem_array(classes.n, sizeof(*classes.at));
    for (size_t i = 0; i < classes.n; i++)
        classes.at[i] = event_folder_class(t, i);
    struct reading r = {.q = &q, .trace = t, .spans = event_spans_new(classes.at, classes.n)};
    if (event_query_new(&query, q.where, classes.at, classes.n, &e)) {
        code = command_misuse(&command_events, "--where: %s", e.text);
    } else if (event_places_open(&r.places, q.folder, &e)) {
        code = command_fail(EXIT_FAILED, "%s", e.text);
    } else {
        r.query = query;
        code = show(&r, &classes);
    }
    event_spans_free(r.spans);
    open_spans_release(&r.open);
    event_places_close(r.places);
    event_query_free(query);
    free(classes.at);
    event_folder_close(t);
    events_sum_free(q.sum);
    return code;
}
