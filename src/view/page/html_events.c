/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/page/html_events.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash_map.h"
#include "base/vec.h"
#include "model/profile/figure_bounds.h"
#include "model/trace/event_spans.h"
#include "model/trace/live_bytes.h"
#include "view/events/events_view.h"
#include "view/formats/chrome_budget.h"
#include "view/formats/chrome_tracks.h"
#include "view/page/html_marks.h"
#include "view/text/text.h"

/* The events of one name. */
struct kind {
    char *name;
    uint32_t counts[HTML_EVENTS_STEPS];
};

/* An event that the page may have. */
struct row {
    uint64_t number;  /* of the event, from 0 */
    uint64_t took_ns; /* of the span that it ends, or begins */
    bool ends_span, begins_open, is_chosen;
    char *line; /* its JSON */
};

struct html_events {
    struct html_events_options o;
    char *folder, *filter;
    struct chrome_tracks *tracks;
    struct chrome_budget *budget; /* counts spans: one unit each */
    /* of this reading */
    struct event_spans *spans;
    struct live_bytes *live;
    struct events_view view;
    struct buf line;
    uint64_t taken, number; /* events of the trace; those that the page may have */
    bool is_second;
    /* of the events in the span: all; those that match the query */
    uint64_t n_all, n, n_spans, first_ns, last_ns, step_ns;
    uint32_t n_steps;
    struct map by_name;
    struct VEC(struct kind) kinds;
    bool has_live;
    double live_most[HTML_EVENTS_STEPS],
        live_last[HTML_EVENTS_STEPS]; /* NAN: no event in the step changed it */
    struct VEC(struct row) rows;
    struct html_marks marks;
    /* after html_events_end() */
    uint64_t lost, n_chosen, n_chosen_spans;
};

struct html_events *html_events_new(const struct html_events_options *o)
{
    struct html_events *h = mem_alloc(sizeof(*h));
    h->o = *o;
    h->folder = mem_strdup(o->folder);
    h->filter = o->filter ? mem_strdup(o->filter) : NULL;
    h->tracks = chrome_tracks_new(o->names);
    h->budget = chrome_budget_new(HTML_EVENTS_MOST / 2);
    h->spans = event_spans_new(o->classes, o->n_classes);
    h->live = live_bytes_new();
    h->view.has_numbers = o->has_numbers;
    for (uint32_t i = 0; i < HTML_EVENTS_STEPS; i++)
        h->live_most[i] = h->live_last[i] = NAN;
    return h;
}

static void release_reading(struct html_events *h)
{
    event_spans_free(h->spans);
    live_bytes_free(h->live);
    h->spans = NULL;
    h->live = NULL;
}

void html_events_free(struct html_events *h)
{
    if (!h)
        return;
    release_reading(h);
    chrome_tracks_free(h->tracks);
    chrome_budget_free(h->budget);
    vec_each (struct kind, k, &h->kinds)
        free(k->name);
    vec_each (struct row, r, &h->rows)
        free(r->line);
    vec_release(&h->kinds);
    vec_release(&h->rows);
    map_release(&h->by_name);
    buf_release(&h->line);
    html_marks_release(&h->marks);
    free(h->folder);
    free(h->filter);
    free(h);
}

/* ---- the first reading ---- */

/* Returns whether the event ends a span. *took_ns: the time that the longest one took. */
static bool ends_span(const struct span_change *change, uint64_t *took_ns)
{
    const struct span *ended[] = {change->ended, change->off_cpu};
    bool ends = false;
    *took_ns = 0;
    for (int i = 0; i < 2; i++) {
        const uint64_t took = ended[i] ? ended[i]->ended_ns - ended[i]->began_ns : 0;
        *took_ns = took > *took_ns ? took : *took_ns;
        ends = ends || ended[i];
    }
    return ends;
}

static void measure(struct html_events *h, const struct trace_event *e, const struct span_change *change,
                    bool is_kept)
{
    uint64_t took_ns;
    h->first_ns = h->n_all ? h->first_ns : e->time_ns;
    h->last_ns = e->time_ns;
    h->n_all++;
    h->n += is_kept;
    open_spans_add(&h->marks.open, change, h->first_ns);
    if (!e->image_id)
        chrome_tracks_learn(h->tracks, e);
    if (!is_kept || !ends_span(change, &took_ns))
        return;
    h->n_spans++;
    chrome_budget_offer_slice(h->budget, took_ns, 1);
}

void html_events_again(struct html_events *h)
{
    const uint64_t lasts_ns = h->last_ns - h->first_ns;
    struct span_change change;
    event_spans_finish(h->spans, &change);
    if (h->n_all)
        open_spans_add(&h->marks.open, &change, h->first_ns);
    html_marks_choose(&h->marks);
    vec_each (const struct open_span, s, &h->marks.open)
        chrome_tracks_add(h->tracks, s->pid, s->thread);
    chrome_budget_decide(h->budget, 0, 0, 0);
    h->step_ns = lasts_ns / HTML_EVENTS_STEPS + 1;
    h->n_steps = h->n_all ? (uint32_t)(lasts_ns / h->step_ns) + 1 : 0;
    release_reading(h);
    h->spans = event_spans_new(h->o.classes, h->o.n_classes);
    h->live = live_bytes_new();
    h->taken = 0;
    h->is_second = true;
}

/* ---- the second reading ---- */

static void count(struct html_events *h, const struct trace_event *e)
{
    bool added;
    const uint64_t step = (e->time_ns - h->first_ns) / h->step_ns;
    if (e->time_ns < h->first_ns || step >= h->n_steps)
        return; /* the files have changed since the first reading */
    const char *name = e->class->name;
    const size_t at = map_put(&h->by_name, name, strlen(name), h->kinds.len, &added);
    if (added)
        vec_push(&h->kinds)->name = mem_strdup(name);
    h->kinds.at[at].counts[step]++;
    uint64_t of_program;
    if (!live_bytes_take(h->live, e, &of_program))
        return;
    const double live = (double)live_bytes_sum(h->live);
    h->has_live = true;
    h->live_most[step] = fmax(h->live_most[step], live);
    h->live_last[step] = live;
}

static pid_t process_of(const struct trace_event *e)
{
    return e->image_id ? e->pid : (pid_t)trace_event_value(e, "pid");
}

static void add_row(struct html_events *h, const struct trace_event *e, const struct span_change *change)
{
    struct row r = {.number = h->number++};
    r.ends_span = ends_span(change, &r.took_ns);
    const bool is_long = r.ends_span && chrome_budget_take_slice(h->budget, r.took_ns, 1);
    const struct open_span *open = html_marks_begins(&h->marks, h->taken, r.number);
    if (open) {
        r.begins_open = true;
        r.took_ns = open->ended_ns - open->began_ns;
    }
    if (!is_long && !open && r.number + HTML_EVENTS_MOST < h->n)
        return;
    const struct event_place place = h->o.place(h->o.place_arg, e);
    struct sink out = sink_to_buf(&h->line);
    buf_reset(&h->line);
    h->view.out = &out;
    events_view_json(&h->view, e, &place, change);
    r.line = mem_strndup(h->line.data, h->line.len - 1); /* without the newline */
    *vec_push(&h->rows) = r;
    chrome_tracks_add(h->tracks, process_of(e), e->thread);
    if (change->off_cpu)
        chrome_tracks_add(h->tracks, change->off_cpu->pid, change->off_cpu->thread);
}

/* Takes an event in the span of time. */
static void take(struct html_events *h, const struct trace_event *e, const struct span_change *change,
                 bool is_kept)
{
    if (!h->is_second) {
        measure(h, e, change, is_kept);
    } else if (is_kept && e->time_ns <= h->last_ns) { /* a later one was written after the first reading */
        count(h, e);
        add_row(h, e, change);
    }
}

void html_events_take(struct html_events *h, const struct trace_event *e, bool is_kept)
{
    struct span_change change;
    if (!h->view.began_ns)
        h->view.began_ns = e->time_ns;
    event_spans_take(h->spans, e, &change);
    if (is_kept)
        event_spans_choose(h->spans);
    if ((!h->o.from_ns || e->realtime_ns > h->o.from_ns) && e->realtime_ns <= h->o.to_ns)
        take(h, e, &change, is_kept);
    h->taken++;
}

/* ---- the choice ---- */

static int by_length(const void *a, const void *b)
{
    const struct row *x = *(const struct row *const *)a, *y = *(const struct row *const *)b;
    if (x->took_ns != y->took_ns)
        return x->took_ns < y->took_ns ? 1 : -1;
    return x->number < y->number ? 1 : -1;
}

/* Chooses a row if there is room. Returns whether there was. */
static bool choose(struct html_events *h, struct row *r, uint64_t most_rows, uint64_t *room)
{
    const uint64_t bytes = strlen(r->line) + 1;
    if (r->is_chosen)
        return true;
    if (h->n_chosen == most_rows || bytes > *room)
        return false;
    *room -= bytes;
    r->is_chosen = true;
    h->n_chosen++;
    h->n_chosen_spans += r->ends_span;
    return true;
}

/* The longest spans have at most half of the room; the last events have what is left. */
static void choose_rows(struct html_events *h)
{
    const size_t n = h->rows.len;
    uint64_t room = h->o.most_bytes, of_spans = room / 2, bytes = 0;
    struct row **longest = mem_array(n + 1, sizeof(*longest));
    for (size_t i = 0; i < n; i++) {
        longest[i] = &h->rows.at[i];
        bytes += strlen(longest[i]->line) + 1;
    }
    const bool all_fit = n <= HTML_EVENTS_MOST && bytes <= room;
    if (!all_fit) {
        const uint64_t before = of_spans;
        qsort(longest, n, sizeof(struct row *), by_length);
        for (size_t i = 0; i < n && (longest[i]->ends_span || longest[i]->begins_open); i++)
            if (!choose(h, longest[i], HTML_EVENTS_MOST / 2, &of_spans))
                break;
        room -= before - of_spans;
    }
    for (size_t i = n; i-- > 0;)
        if (!choose(h, &h->rows.at[i], HTML_EVENTS_MOST, &room))
            break;
    free(longest);
}

void html_events_end(struct html_events *h, const struct event_losses *losses)
{
    vec_each (const struct cpu_loss, l, &losses->by_cpu)
        h->lost += l->events;
    html_marks_add_lost(&h->marks, losses, h->first_ns, h->last_ns, h->step_ns);
    release_reading(h);
    h->n =
        h->number; /* a free that seems to come before its block is known to match in the second reading only */
    choose_rows(h);
}

/* ---- the data ---- */

/* Says that a query chooses the events. */
static void note_filter(const struct html_events *h, struct buf *text)
{
    static const struct text_style utf8 = {.utf8 = true};
    buf_addstr(text, " that match (");
    text_add_name(text, &utf8, h->filter);
    buf_printf(text, "), of %" PRIu64, h->n_all);
}

void html_events_note(const struct html_events *h, struct buf *text)
{
    static const struct text_style utf8 = {.utf8 = true};
    const bool has_all = h->n_chosen == h->n;
    if (has_all)
        buf_printf(text, "\nThe page lists all %" PRIu64 " events", h->n);
    else
        buf_printf(text, "\nThe page lists %" PRIu64 " of %" PRIu64 " events", h->n_chosen, h->n);
    if (h->filter)
        note_filter(h, text);
    if (has_all) {
        buf_addstr(text, ".\n");
    } else {
        buf_addstr(text, ": the longest spans, and the last events. ");
        buf_addstr(text, h->filter ? "The trace has all: allium events " : "All: allium events ");
        text_add_name(text, &utf8, h->folder);
        buf_addch(text, '\n');
    }
    if (h->o.asks_age)
        buf_addstr(text, "An event has no age: terms with age match none.\n");
}

/* A step in which nothing changed has the bytes of the step before it. */
static void add_live(const struct html_events *h, struct page_blob *b)
{
    double most[HTML_EVENTS_STEPS], last = 0;
    for (uint32_t i = 0; i < h->n_steps; i++) {
        most[i] = fmax(h->live_most[i], last);
        last = isnan(h->live_last[i]) ? last : h->live_last[i];
    }
    page_blob_add_f64(b, "live_most_bytes", most, h->n_steps, NULL, 0);
}

static void add_rows(const struct html_events *h, struct page_blob *b)
{
    char **lines = mem_array(h->n_chosen + 1, sizeof(*lines));
    double *numbers = mem_array(h->n_chosen + 1, sizeof(*numbers));
    size_t n = 0;
    vec_each (const struct row, r, &h->rows)
        if (r->is_chosen) {
            lines[n] = r->line;
            numbers[n++] = (double)r->number;
        }
    page_blob_add_texts(b, "lines", lines, n);
    page_blob_add_f64(b, "numbers", numbers, n, NULL, 0);
    free(lines);
    free(numbers);
}

void html_events_add(const struct html_events *h, struct page_blob *b)
{
    struct json *j = &b->json;
    json_open(j, "events", '{');
    json_text(j, "folder", h->folder);
    json_flag(j, "has_numbers", h->o.has_numbers);
    if (h->filter)
        json_text(j, "filter", h->filter);
    json_whole(j, "all_events", h->n_all);
    json_whole(j, "events", h->n);
    json_whole(j, "spans", h->n_spans);
    json_whole(j, "listed_spans", h->n_chosen_spans);
    json_whole(j, "lost_events", h->lost);
    json_flag(j, "bounds", figure_bounds_of(h->o.names, ROLLUP_LIVE));
    json_whole(j, "first_ns", h->n_all ? h->first_ns - h->view.began_ns : 0);
    json_whole(j, "step_ns", h->step_ns);
    json_whole(j, "steps", h->n_steps);
    json_open(j, "kinds", '[');
    vec_each (const struct kind, k, &h->kinds) {
        json_open(j, NULL, '{');
        json_text(j, "name", k->name);
        page_blob_add_u32(b, "counts", k->counts, h->n_steps);
        json_close(j, '}');
    }
    json_close(j, ']');
    if (h->has_live)
        add_live(h, b);
    json_open(j, "tracks", '[');
    chrome_tracks_write(h->tracks, j);
    json_close(j, ']');
    add_rows(h, b);
    html_marks_write(&h->marks, b, h->view.began_ns, h->o.has_numbers);
    json_close(j, '}');
}
