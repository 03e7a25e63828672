/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "cli/command.h"
#include "cli/option_values.h"
#include "cli/pager.h"
#include "cli/screen_options.h"
#include "cli/source_trace.h"
#include "cli/terminal.h"
#include "cli/trace/events_sum.h"
#include "cli/wrapper_lists.h"
#include "collect/trace/event_folder.h"
#include "collect/trace/trace_sites.h"
#include "model/trace/event_counts.h"
#include "model/trace/event_query.h"
#include "view/events/events_view.h"
#include "view/table/table_view.h"

static const struct option_doc options[] = {
    {"where", 0, "QUERY", "only matching events: 'event:malloc size>1M', see QUERIES in allium-events(1)"},
    {"by", 0, "GROUP", "count events by event, thread or cpu"},
    {"top", 0, "N", "print the first N events, or the N largest rows of --by; 0: all (all)"},
    {"sum", 0, "SUM", "add up EVENT[.FIELD][,by=FIELD...]: malloc.size,by=site"},
    {"histogram", 0, NULL, "with --sum, print the sizes below each row, by powers of two"},
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
    "allium events server.4711.trace --sum malloc.size,by=site",
    "add up the sizes for each call of malloc",
    NULL,
};

static int run(int argc, char **argv);

const struct command command_events = {
    .name = "events",
    .usage = "DIR [--where QUERY] [--by event|thread|cpu] [--sum EVENT[.FIELD][,by=FIELD...] [--histogram]] "
             "[--top N] " SCREEN_USAGE " [--json] [--no-pager]",
    .summary = "list or count the events of a trace",
    .examples = examples,
    .options = options,
    .run = run,
};

static const struct word groups[] = {{"event", EVENT_COUNTS_BY_EVENT},
                                     {"thread", EVENT_COUNTS_BY_THREAD},
                                     {"cpu", EVENT_COUNTS_BY_CPU},
                                     {NULL, 0}};

struct request {
    const char *folder, *where;
    int group; /* -1: list */
    uint32_t top;
    struct events_sum *sum; /* NULL: list or count */
    bool json, no_pager;
};

/* What is needed to say where an event was made. */
struct places {
    struct profile *p;
    struct trace_sites *sites;
};

/* The event's return address; 0: it has none. */
static uint64_t site_of(const struct trace_event *e)
{
    uint32_t end = 0;
    for (uint32_t i = 0; i < e->class->n_fields; i++) {
        const struct event_field *f = &e->class->fields[i];
        const uint32_t at = event_field_at(f, end);
        if (f->type == EVENT_HEX && !strcmp(f->name, "site"))
            return trace_event_number(f, e->fields + at);
        end = at + f->bytes;
    }
    return 0;
}

/* The innermost function that only passes on no requests; else the outermost one of the address. */
static struct event_place place_of(void *arg, const struct trace_event *e)
{
    struct places *w = arg;
    struct event_place place = {.function = NULL};
    const uint64_t site = site_of(e);
    if (!site)
        return place;
    const uint32_t image = trace_sites_image(w->sites, e);
    const struct profile_location *l = &w->p->locations.at[trace_sites_location(w->sites, image, site)];
    if (l->module != PROFILE_NONE)
        place.module = profile_text(w->p, w->p->modules.at[l->module].path);
    place.address = l->address;
    for (uint32_t i = 0; i < l->n_lines; i++) {
        const struct profile_line *line = &w->p->lines.at[l->first_line + i];
        place.function = profile_text(w->p, line->function);
        place.file = profile_text(w->p, line->file);
        place.line = line->line;
        if (!line->wrapper)
            break;
    }
    return place;
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

/* Reads all events, and lists or counts those that match. Returns 0, or -errno with a line. */
static int read_events(const struct request *q, struct event_folder *t, const struct event_query *query,
                       struct places *places, struct events_view *v, struct event_counts *counts,
                       struct error *e)
{
    struct trace_event event;
    uint64_t n = 0;
    int found;
    while ((!q->top || counts || q->sum || n < q->top) && (found = event_folder_next(t, &event, e)) != 0) {
        if (found < 0)
            return found;
        v->began_ns = v->began_ns ? v->began_ns : event.time_ns;
        if (!event_query_fits(query, &event, v->began_ns, place_of, places))
            continue;
        n++;
        if (counts) {
            event_counts_add(counts, &event);
            continue;
        }
        const struct event_place place = place_of(places, &event);
        if (q->sum) {
            events_sum_add(q->sum, &event, site_of(&event), &place);
            continue;
        }
        if (q->json)
            events_view_json(v, &event, &place);
        else
            events_view_line(v, &event, &place);
    }
    return 0;
}

static void write_counts(const struct request *q, struct sink *out, struct event_counts *counts,
                         const struct text_style *style)
{
    struct table *t = event_counts_table(counts, q->top);
    if (q->json)
        for (uint32_t row = 0; row < table_rows(t); row++)
            table_view_json_row(out, t, row);
    else
        table_view_text(out, t, style);
    table_free(t);
}

static int show(const struct request *q, struct event_folder *t, const struct event_query *query,
                struct places *places)
{
    struct error e = {""};
    struct sink out = pager_sink(!q->no_pager && !q->json);
    const struct text_style style = terminal_style(stdout);
    struct events_view v = {.out = &out, .style = &style};
    struct event_counts *counts = q->group >= 0 ? event_counts_new((enum event_counts_group)q->group) : NULL;
    if (!q->sum && (!counts || q->json))
        events_view_begin(&v, q->json);
    const int bad = read_events(q, t, query, places, &v, counts, &e);
    if (counts)
        write_counts(q, &out, counts, &style);
    else if (q->sum)
        events_sum_write(q->sum, q->top, q->json, &out, &style);
    event_counts_free(counts);
    const struct trace_losses lost = event_folder_losses(t);
    if (q->json && !q->sum && !bad)
        events_view_json_end(&v, lost.events, lost.cut_packets);
    int code = pager_written(&out, bad ? EXIT_FAILED : EXIT_DONE);
    if (bad)
        return command_fail(EXIT_FAILED, "%s", e.text);
    if (lost.events)
        command_fail(0, "%llu events were lost while the trace was recorded",
                     (unsigned long long)lost.events);
    if (lost.cut_packets)
        command_fail(0, "the trace was cut short: the last packet of %llu files is not whole",
                     (unsigned long long)lost.cut_packets);
    return code;
}

static int run(int argc, char **argv)
{
    struct request q;
    struct error e = {""};
    struct event_folder *t;
    struct event_query *query;
    struct places places = {NULL};
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
    const size_t n = event_folder_classes(t);
    const struct event_class **classes = mem_array(n, sizeof(*classes));
    for (size_t i = 0; i < n; i++)
        classes[i] = event_folder_class(t, i);
    if (event_query_new(&query, q.where, classes, n, &e)) {
        code = command_misuse(&command_events, "--where: %s", e.text);
    } else if (source_trace_names(&places.p, q.folder, &e)) {
        code = command_fail(EXIT_FAILED, "%s", e.text);
    } else {
        wrapper_lists_mark(places.p);
        places.sites = trace_sites_new(places.p);
        code = show(&q, t, query, &places);
    }
    trace_sites_free(places.sites);
    profile_free(places.p);
    event_query_free(query);
    free(classes);
    event_folder_close(t);
    events_sum_free(q.sum);
    return code;
}
