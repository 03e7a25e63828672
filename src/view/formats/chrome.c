/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/formats/chrome.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/hash_map.h"
#include "base/vec.h"
#include "model/trace/live_bytes.h"
#include "view/events/event_fields.h"
#include "view/events/span_name.h"
#include "view/formats/chrome_tracks.h"
#include "view/formats/json.h"

#define RECORD_DEPTH 2 /* of the file's JSON: an object in an array in an object */
#define END_BYTES    16

/* A value of a counter; `value` UINT64_MAX: there is none. */
struct point {
    uint64_t time_ns, value;
};

struct counter {
    pid_t pid;
    const char *name;
    uint64_t step; /* number of the step of time to which `last` and `highest` belong */
    struct point last, highest;
};

struct chrome {
    struct chrome_options o;
    struct chrome_tracks *tracks;
    struct chrome_budget *budget;
    struct map counter_numbers;
    struct VEC(struct counter) counters;
    /* of this reading */
    struct event_spans *spans;
    struct live_bytes *live;
    bool writes; /* the second one */
    uint64_t crossing;
    /* of the trace */
    uint64_t began_ns, began_realtime_ns, last_ns;
    struct json file;
    struct buf record; /* what is being made, before it is known to fit */
    struct chrome_counts counts;
};

struct chrome *chrome_new(const struct chrome_options *o)
{
    struct chrome *c = mem_alloc(sizeof(*c));
    c->o = *o;
    c->tracks = chrome_tracks_new(o->names);
    c->budget = chrome_budget_new(o->most_bytes);
    c->spans = event_spans_new(o->classes, o->n_classes);
    c->live = live_bytes_new();
    return c;
}

void chrome_free(struct chrome *c)
{
    if (!c)
        return;
    event_spans_free(c->spans);
    live_bytes_free(c->live);
    chrome_budget_free(c->budget);
    chrome_tracks_free(c->tracks);
    map_release(&c->counter_numbers);
    vec_release(&c->counters);
    buf_release(&c->record);
    free(c);
}

/* ---- records: made in a buffer, and written if they fit ---- */

/* Each record begins with the comma behind the one before it. */
static void write_record(struct chrome *c)
{
    const size_t unused = !c->file.more;
    sink_write(c->file.out, c->record.data + unused, c->record.len - unused);
    c->file.more = true;
}

/* Begins a record, or one more of the same. */
static struct json open_record(struct chrome *c, struct sink *out, const char *phase, const char *name,
                               uint64_t time_ns)
{
    *out = sink_to_buf(&c->record);
    struct json j = {.out = out, .depth = RECORD_DEPTH, .more = true};
    json_open(&j, NULL, '{');
    json_text(&j, "ph", phase);
    json_text(&j, "name", name);
    json_real(&j, "ts", (double)(time_ns - c->began_ns) / 1000);
    return j;
}

static void add_thread(struct json *j, pid_t pid, uint32_t thread)
{
    json_signed(j, "pid", pid);
    json_whole(j, "tid", thread);
}

/* ---- arguments ---- */

static bool is_shown(const struct event_field *f)
{
    return strcmp(f->name, "pid") && strcmp(f->name, "site");
}

/* Adds the fields of an event. Where a span has two of one name, that of its beginning gets another one. */
static void add_fields(struct json *j, const struct trace_event *e, const struct trace_event *end)
{
    char key[256];
    const unsigned char *at;
    uint32_t behind = 0;
    for (uint32_t i = 0; i < e->class->n_fields; i++) {
        const struct event_field *f = &e->class->fields[i];
        const uint32_t begin = event_field_at(f, behind);
        behind = begin + f->bytes;
        if (!is_shown(f))
            continue;
        const struct event_field *twin = end ? trace_event_field(end, f->name, &at) : NULL;
        if (twin && twin->bytes == f->bytes && !memcmp(at, e->fields + begin, f->bytes))
            continue;
        snprintf(key, sizeof(key), "%s%s%s", twin ? "begin_" : "", f->name,
                 f->type == EVENT_BYTES ? "_bytes" : "");
        event_fields_json(j, key, f, e->fields + begin);
    }
}

static void add_place(const struct chrome *c, struct json *j, const struct trace_event *e)
{
    const struct event_place place = c->o.place(c->o.place_arg, e);
    if (place.function)
        json_text(j, "function", place.function);
    if (place.file && *place.file)
        json_text(j, "file", place.file);
    if (place.line)
        json_whole(j, "line", place.line);
}

/* `begin`, `end`: the events of a span; of an instant `begin` alone. */
static void add_arguments(const struct chrome *c, struct json *j, const struct trace_event *begin,
                          const struct trace_event *end, bool unfinished)
{
    json_open(j, "args", '{');
    add_fields(j, begin, end);
    if (end)
        add_fields(j, end, NULL);
    add_place(c, j, begin);
    if (unfinished)
        json_flag(j, "unfinished", true);
    json_close(j, '}');
}

/* ---- slices ---- */

static const char *const categories[SPAN_KINDS] = {
    [SPAN_CALL] = "allocator", [SPAN_OWN] = "program", [SPAN_FUNCTION] = "function", [SPAN_FAULT] = "kernel",
    [SPAN_RECLAIM] = "kernel", [SPAN_MAPS] = "kernel", [SPAN_OFF_CPU] = "sched",
};

static void make_slice(struct chrome *c, const struct span *s, const struct trace_event *begin,
                       const struct trace_event *end)
{
    struct sink out;
    struct json j = open_record(c, &out, "X", span_name(s, end), s->began_ns);
    json_real(&j, "dur", (double)(s->ended_ns - s->began_ns) / 1000);
    json_text(&j, "cat", categories[s->role->kind]);
    add_thread(&j, s->pid, s->thread);
    add_arguments(c, &j, begin, end, s->unfinished);
    json_close(&j, '}');
}

/* A span that crosses another one has a track of its own, and two records. */
static void make_crossing(struct chrome *c, const struct span *s, const struct trace_event *begin,
                          const struct trace_event *end)
{
    c->crossing++;
    for (int ends = 0; ends < 2; ends++) {
        struct sink out;
        struct json j =
            open_record(c, &out, ends ? "e" : "b", span_name(s, end), ends ? s->ended_ns : s->began_ns);
        json_text(&j, "cat", categories[s->role->kind]);
        json_hex(&j, "id", c->crossing);
        add_thread(&j, s->pid, s->thread);
        if (!ends)
            add_arguments(c, &j, begin, end, s->unfinished);
        json_close(&j, '}');
    }
}

/* `end`: the event that ends the span; NULL: it is unfinished, or the event is of another thread. */
static void add_span(struct chrome *c, const struct span *s, const struct trace_event *end)
{
    const struct trace_event begin = event_spans_beginning(s, c->began_realtime_ns - c->began_ns);
    const uint64_t took_ns = s->ended_ns - s->began_ns;
    chrome_tracks_add(c->tracks, s->pid, s->thread);
    buf_reset(&c->record);
    if (s->crosses)
        make_crossing(c, s, &begin, end);
    else
        make_slice(c, s, &begin, end);
    if (!c->writes) {
        chrome_budget_offer_slice(c->budget, took_ns, c->record.len);
    } else if (chrome_budget_take_slice(c->budget, took_ns, c->record.len)) {
        write_record(c);
        c->counts.slices++;
    }
}

/* ---- instants ---- */

/* The program's own events, and what happens to processes. */
static bool is_instant(const struct trace_event *e)
{
    static const char *const shown[] = {"kernel:process_fork", "kernel:process_exec", "kernel:thread_exit",
                                        "kernel:oom_victim"};
    if (e->image_id)
        return strncmp(e->class->name, "allium:", 7);
    for (size_t i = 0; i < sizeof(shown) / sizeof(*shown); i++)
        if (!strcmp(e->class->name, shown[i]))
            return true;
    return !strncmp(e->class->name, "usdt:", 5);
}

static void add_instant(struct chrome *c, const struct trace_event *e)
{
    struct sink out;
    const pid_t pid = e->image_id ? e->pid : (pid_t)trace_event_value(e, "pid");
    chrome_tracks_add(c->tracks, pid, e->thread);
    buf_reset(&c->record);
    struct json j = open_record(c, &out, "i", e->class->name, e->time_ns);
    json_text(&j, "s", "t");
    json_text(&j, "cat", e->image_id ? "program" : "kernel");
    add_thread(&j, pid, e->thread);
    add_arguments(c, &j, e, NULL, false);
    json_close(&j, '}');
    if (!c->writes) {
        chrome_budget_offer_instant(c->budget, c->record.len);
    } else if (chrome_budget_take_instant(c->budget, c->record.len)) {
        write_record(c);
        c->counts.instants++;
    }
}

/* ---- counters ---- */

static void add_point(struct chrome *c, const struct counter *k, const struct point *p)
{
    struct sink out;
    buf_reset(&c->record);
    struct json j = open_record(c, &out, "C", k->name, p->time_ns);
    json_signed(&j, "pid", k->pid);
    json_open(&j, "args", '{');
    json_whole(&j, "bytes", p->value);
    json_close(&j, '}');
    json_close(&j, '}');
    if (!c->writes) {
        chrome_budget_offer_counter(c->budget, c->record.len);
    } else if (chrome_budget_take_counter(c->budget, c->record.len)) {
        write_record(c);
        c->counts.counters++;
    }
}

/* Writes what a step of time has: the highest value, and the last one. */
static void end_step(struct chrome *c, struct counter *k)
{
    if (k->last.value == UINT64_MAX)
        return;
    if (k->highest.value > k->last.value)
        add_point(c, k, &k->highest);
    add_point(c, k, &k->last);
    k->last.value = UINT64_MAX;
}

static void add_value(struct chrome *c, const struct trace_event *e, pid_t pid, const char *name,
                      uint64_t value)
{
    bool added;
    const uint64_t key[] = {(uint32_t)pid, (uintptr_t)name};
    const size_t at = map_put(&c->counter_numbers, key, sizeof(key), c->counters.len, &added);
    if (added)
        *vec_push(&c->counters) = (struct counter){.pid = pid, .name = name, .last.value = UINT64_MAX};
    struct counter *k = &c->counters.at[at];
    const struct point p = {e->time_ns, value};
    const uint64_t step_ns = c->writes ? chrome_budget_step(c->budget) : 0;
    if (!step_ns) {
        add_point(c, k, &p);
        return;
    }
    const uint64_t step = (e->time_ns - c->began_ns) / step_ns;
    if (step != k->step)
        end_step(c, k);
    if (k->last.value == UINT64_MAX || value > k->highest.value)
        k->highest = p;
    k->last = p;
    k->step = step;
}

static void add_resident(struct chrome *c, const struct trace_event *e)
{
    static const char *const names[] = {"resident: file", "resident: anonymous", "swapped",
                                        "resident: shared"};
    const uint64_t kind = trace_event_value(e, "kind");
    if (kind < sizeof(names) / sizeof(*names) && trace_event_value(e, "own"))
        add_value(c, e, (pid_t)trace_event_value(e, "pid"), names[kind], trace_event_value(e, "bytes"));
}

/* ---- the file ---- */

void chrome_event(struct chrome *c, const struct trace_event *e)
{
    struct span_change change;
    uint64_t live;
    if (!c->began_ns) {
        c->began_ns = e->time_ns;
        c->began_realtime_ns = e->realtime_ns;
    }
    c->last_ns = e->time_ns;
    event_spans_take(c->spans, e, &change);
    for (size_t i = 0; i < change.n_unfinished; i++)
        add_span(c, &change.unfinished[i], NULL);
    if (change.ended)
        add_span(c, change.ended, e);
    if (change.off_cpu)
        add_span(c, change.off_cpu, NULL);
    if (change.is_instant && is_instant(e))
        add_instant(c, e);
    if (live_bytes_take(c->live, e, &live))
        add_value(c, e, e->pid, "live", live);
    if (!e->image_id && !strcmp(e->class->name, "kernel:rss"))
        add_resident(c, e);
    if (!e->image_id && !c->writes)
        chrome_tracks_learn(c->tracks, e);
}

/* Spans that go on where the trace ends. */
static void end_reading(struct chrome *c)
{
    struct span_change change;
    event_spans_finish(c->spans, &change);
    for (size_t i = 0; i < change.n_unfinished; i++)
        add_span(c, &change.unfinished[i], NULL);
    vec_each (struct counter, k, &c->counters)
        end_step(c, k);
}

static void write_head(const struct chrome *c, struct json *j)
{
    json_open(j, NULL, '{');
    json_text(j, "displayTimeUnit", "ns");
    json_open(j, "otherData", '{');
    json_text(j, "exporter", c->o.exporter);
    json_whole(j, "began_realtime_ns", c->began_realtime_ns);
    json_close(j, '}');
    json_open(j, "traceEvents", '[');
    chrome_tracks_write(c->tracks, j);
}

void chrome_begin(struct chrome *c, struct sink *out)
{
    end_reading(c);
    buf_reset(&c->record);
    struct sink measured = sink_to_buf(&c->record);
    write_head(c, &(struct json){.out = &measured});
    chrome_budget_decide(c->budget, c->record.len + END_BYTES, c->last_ns - c->began_ns, c->counters.len);
    event_spans_free(c->spans);
    live_bytes_free(c->live);
    c->spans = event_spans_new(c->o.classes, c->o.n_classes);
    c->live = live_bytes_new();
    c->writes = true;
    c->crossing = 0;
    c->file = (struct json){.out = out};
    write_head(c, &c->file);
}

struct chrome_counts chrome_end(struct chrome *c)
{
    end_reading(c);
    json_close(&c->file, ']');
    json_close(&c->file, '}');
    c->counts.left = chrome_budget_left_out(c->budget);
    c->counts.missing = event_spans_counts(c->spans);
    c->counts.has_begin = event_spans_has_begin(c->spans);
    return c->counts;
}
