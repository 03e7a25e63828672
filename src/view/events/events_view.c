/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/events/events_view.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/units.h"
#include "view/events/event_fields.h"
#include "view/formats/json.h"

#define VERSION      1
#define DEPTH_SHOWN  16 /* levels of indentation */
#define NAME_COLUMNS 48 /* of a function's name on a terminal: those of templates are long */

void events_view_begin(struct events_view *v, bool json)
{
    if (json) {
        struct json j = {.out = v->out, .line = true};
        json_open(&j, NULL, '{');
        json_text(&j, "schema", "allium-events");
        json_whole(&j, "version", VERSION);
        json_close(&j, '}');
        return;
    }
    sink_printf(v->out, "%s%14s %10s %4s %8s  %-20s %s%s\n", text_begin(v->style, TEXT_FAINT),
                v->has_numbers ? "NUMBER" : "TIME", v->has_numbers ? "" : "DELTA", "CPU", "THREAD", "EVENT",
                "FIELDS", text_end(v->style, TEXT_FAINT));
}

static void add_value(struct buf *b, const struct text_style *style, const struct event_field *f,
                      const unsigned char *at)
{
    char text[EVENT_BYTES_MAX + 1];
    const uint64_t value = trace_event_number(f, at);
    const char *label = f->type == EVENT_ENUM ? trace_event_label(f, (int64_t)value) : NULL;
    switch (f->type) {
    case EVENT_TEXT:
        buf_addch(b, '"');
        text_add_name(b, style, event_fields_text(text, f, at));
        buf_addch(b, '"');
        break;
    case EVENT_HEX:
        buf_printf(b, "0x%" PRIx64, value);
        break;
    case EVENT_FLOAT:
        buf_printf(b, "%g", trace_event_real(f, at));
        break;
    case EVENT_ENUM:
    case EVENT_SIGNED:
        if (label)
            text_add_name(b, style, label);
        else
            buf_printf(b, "%" PRId64, (int64_t)value);
        break;
    default:
        buf_printf(b, "%" PRIu64, value);
    }
}

static void add_place(struct buf *b, const struct text_style *style, const struct event_place *place)
{
    if (!place->function)
        return;
    buf_addstr(b, "  ");
    text_add_short(b, style, place->function, style->columns ? NAME_COLUMNS : SIZE_MAX);
    const char *slash = place->file ? strrchr(place->file, '/') : NULL;
    const char *file = slash ? slash + 1 : place->file;
    if (!file || !*file)
        return;
    buf_addch(b, ' ');
    text_add_name(b, style, file);
    if (place->line)
        buf_printf(b, ":%" PRIu32, place->line);
}

static void add_duration(struct buf *b, const char *label, const struct span *ended)
{
    char took[UNITS_TEXT_BYTES];
    if (ended)
        buf_printf(b, " %s=%s", label,
                   units_format_duration(took, (double)(ended->ended_ns - ended->began_ns)));
}

void events_view_line(struct events_view *v, const struct trace_event *e, const struct event_place *place,
                      const struct span_change *change)
{
    char delta[UNITS_TEXT_BYTES] = "";
    struct buf b = BUF_INIT;
    const uint64_t since_ns = e->time_ns - v->began_ns;
    if (!v->has_numbers && v->last_ns && e->time_ns >= v->last_ns)
        units_format_duration(delta, (double)(e->time_ns - v->last_ns));
    v->last_ns = e->time_ns;
    if (v->has_numbers)
        buf_printf(&b, "%14" PRIu64, since_ns + 1);
    else
        buf_printf(&b, "%4" PRIu64 ".%09" PRIu64, since_ns / 1000000000, since_ns % 1000000000);
    buf_printf(&b, "%c%10s %4" PRIu32 " %8" PRIu32 "  ",
               e->flags & TRACE_EVENT_INTERPOLATED ? '~'
               : e->doubtful                       ? '<'
                                                   : ' ',
               delta, e->cpu, e->thread);
    buf_addstr(&b, text_begin(v->style, TEXT_STRONG));
    const size_t name_at = b.len;
    for (uint32_t i = 0; i < change->depth && i < DEPTH_SHOWN; i++)
        buf_addstr(&b, "  ");
    text_add_name(&b, v->style, trace_event_name(e->class));
    for (size_t width = b.len - name_at; width < 20; width++)
        buf_addch(&b, ' ');
    buf_addstr(&b, text_end(v->style, TEXT_STRONG));
    uint32_t end = 0;
    for (uint32_t i = 0; i < e->class->n_fields; i++) {
        const struct event_field *f = &e->class->fields[i];
        const uint32_t at = event_field_at(f, end);
        end = at + f->bytes;
        if (place->function && !strcmp(f->name, "site"))
            continue; /* the place says it better */
        buf_addch(&b, ' ');
        text_add_name(&b, v->style, f->name);
        buf_addch(&b, '=');
        add_value(&b, v->style, f, e->fields + at);
    }
    add_duration(&b, "took", change->ended);
    add_duration(&b, "was_off", change->off_cpu);
    add_place(&b, v->style, place);
    buf_addch(&b, '\n');
    sink_write(v->out, b.data, b.len);
    buf_release(&b);
}

static void json_value(struct json *j, const struct event_field *f, const unsigned char *at)
{
    char key[256];
    snprintf(key, sizeof(key), "%s%s", f->name, f->type == EVENT_BYTES ? "_bytes" : "");
    event_fields_json(j, key, f, at);
}

static void json_duration(struct json *j, const char *key, const struct span *ended)
{
    if (ended)
        json_whole(j, key, ended->ended_ns - ended->began_ns);
    else
        json_null(j, key);
}

void events_view_json(struct events_view *v, const struct trace_event *e, const struct event_place *place,
                      const struct span_change *change)
{
    struct json j = {.out = v->out, .line = true};
    uint32_t end = 0;
    json_open(&j, NULL, '{');
    if (v->has_numbers) {
        json_null(&j, "time_ns");
        json_null(&j, "since_began_ns");
        json_whole(&j, "number", e->time_ns - v->began_ns + 1);
    } else {
        json_whole(&j, "time_ns", e->realtime_ns);
        json_whole(&j, "since_began_ns", e->time_ns - v->began_ns);
    }
    json_text(&j, "event", e->class->name);
    json_whole(&j, "cpu", e->cpu);
    json_signed(&j, "process", e->pid);
    json_whole(&j, "thread", e->thread);
    json_whole(&j, "flags", e->flags);
    json_flag(&j, "doubtful", e->doubtful);
    json_open(&j, "fields", '{');
    for (uint32_t i = 0; i < e->class->n_fields; i++) {
        const struct event_field *f = &e->class->fields[i];
        const uint32_t at = event_field_at(f, end);
        json_value(&j, f, e->fields + at);
        end = at + f->bytes;
    }
    json_close(&j, '}');
    json_text(&j, "function", place->function);
    json_text(&j, "file", place->file && *place->file ? place->file : NULL);
    if (place->line)
        json_whole(&j, "line", place->line);
    else
        json_null(&j, "line");
    json_text(&j, "module", place->module);
    json_whole(&j, "depth", change->depth);
    json_text(&j, "within", change->within);
    json_duration(&j, "duration_ns", change->ended);
    json_duration(&j, "off_cpu_ns", change->off_cpu);
    json_close(&j, '}');
}

void events_view_json_end(struct events_view *v, const struct events_view_end *end)
{
    struct json j = {.out = v->out, .line = true};
    json_open(&j, NULL, '{');
    json_whole(&j, "lost_events", end->lost_events);
    json_whole(&j, "cut_packets", end->cut_packets);
    if (end->residual_ns)
        json_whole(&j, "residual_ns", end->residual_ns);
    else
        json_null(&j, "residual_ns");
    json_signed(&j, "wall_step_ns", end->wall_step_ns);
    if (end->open)
        open_spans_json(end->open, &j, "open_spans", v->began_ns, v->has_numbers);
    else
        json_null(&j, "open_spans");
    json_close(&j, '}');
}

static void add_part(struct buf *b, const char *name, uint64_t ns, uint64_t total_ns)
{
    char text[UNITS_TEXT_BYTES];
    buf_printf(b, "%s %s (%.1f %%)", name, units_format_duration(text, (double)ns),
               total_ns ? 100.0 * (double)ns / (double)total_ns : 0);
}

void events_view_allocator(struct buf *b, const struct allocator_sums *sums, unsigned known)
{
    static const char *const names[] = {"page faults", "reclaim", "off the CPU"};
    char text[UNITS_TEXT_BYTES];
    int shown = 0;
    buf_printf(b, "%" PRIu64 " calls of the allocator took %s", sums->calls,
               units_format_duration(text, (double)sums->total_ns));
    for (int part = 0; part < SPAN_PART_ANY; part++) {
        if (!(known & 1u << part))
            continue;
        buf_addstr(b, shown++ ? ", " : ": ");
        add_part(b, names[part], sums->part_ns[part], sums->total_ns);
    }
    if (shown > 1)
        add_part(b, "; together", sums->part_ns[SPAN_PART_ANY], sums->total_ns);
    for (int part = 0, n = 0; part < SPAN_PART_ANY; part++)
        if (!(known & 1u << part))
            buf_printf(b, "%s%s", n++ ? ", " : "; not recorded: ", names[part]);
}

static void add_missing(struct buf *b, uint64_t n, const char *text)
{
    if (n)
        buf_printf(b, "%s%" PRIu64 " %s", b->len ? "; " : "", n, text);
}

void events_view_missing(struct buf *b, const struct span_counts *counts)
{
    add_missing(b, counts->unended, "beginnings have no end in the trace");
    add_missing(b, counts->unbegun, "ends have no beginning in the trace");
    add_missing(b, counts->faults_unended, "page faults have no end: they failed, or it is not in the trace");
}
