/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/accounts/allocinfo_view.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "view/formats/allocinfo_text.h"
#include "view/formats/json.h"
#include "view/table/table_view.h"
#include "view/text/notes.h"

/* All that is shown of one look. */
struct shown {
    const struct allocinfo_view *o;
    struct alloc_texts *texts;
    const struct allocinfo_reading *of[ALLOC_MOMENTS];
    struct alloc_row whole; /* sums of all that was read */
    struct alloc_row total; /* of what the query holds for */
    struct alloc_rows sites, rows;
    struct buf *notes;
};

/* ---- the screen ---- */

/* "1,234 sites hold 12.3 MiB in 4.56k calls; 2 of them are not accurate" */
static void add_sum(struct buf *b, const struct alloc_sum *sum)
{
    text_add_number(b, sum->sites, "site");
    buf_addstr(b, sum->sites == 1 ? " holds " : " hold ");
    table_view_add_quantity(b, TABLE_BYTES, (double)sum->bytes);
    buf_addstr(b, " in ");
    table_view_add_quantity(b, TABLE_COUNT, (double)sum->calls);
    buf_addstr(b, sum->calls == 1 ? " call" : " calls");
    if (sum->inexact) {
        buf_addstr(b, "; ");
        text_add_words(b, sum->inexact, "of these sites {is|are} inexact (accurate:no)");
    }
}

/* "+1.20 MiB in -3 calls" */
static void add_change(struct buf *b, const struct alloc_row *total, double seconds)
{
    text_add_change(b, (double)alloc_bytes_change(total) / seconds, TEXT_BYTES);
    buf_addstr(b, " and ");
    text_add_change(b, (double)alloc_calls_change(total) / seconds, TEXT_COUNT);
    buf_addstr(b, " calls");
}

static void write_line(struct sink *out, struct buf *b)
{
    sink_printf(out, "%s\n", buf_str(b));
    buf_reset(b);
}

static void add_reading(const struct shown *s, struct buf *b, enum alloc_moment moment)
{
    text_add_name(b, &s->o->style, s->of[moment]->source);
    buf_printf(b, ", version %u.%u", s->of[moment]->info.version, s->of[moment]->info.minor);
}

static void write_heading(const struct shown *s, struct sink *out)
{
    struct buf b = BUF_INIT;
    bool two = s->o->shape.view == ALLOC_CHANGE;
    for (int moment = two ? ALLOC_BEFORE : ALLOC_AFTER; moment < ALLOC_MOMENTS; moment++) {
        add_reading(s, &b, (enum alloc_moment)moment);
        write_line(out, &b);
        buf_addstr(&b, "  ");
        add_sum(&b, &s->whole.of[moment]);
        write_line(out, &b);
    }
    if (s->o->query) {
        buf_addstr(&b, "where ");
        text_add_name(&b, &s->o->style, query_text(s->o->query));
        buf_addstr(&b, "\n  ");
        add_sum(&b, &s->total.of[ALLOC_AFTER]);
        write_line(out, &b);
    }
    if (two) {
        buf_addstr(&b, "change\n  ");
        add_change(&b, &s->total, 1);
        write_line(out, &b);
    }
    sink_char(out, '\n');
    buf_release(&b);
}

/* "--- 5.00 s after the start, the last 5.00 s: +1.20 KiB and +3.50 calls a second, 20 of 45 rows" */
static void write_interval(const struct shown *s, struct sink *out, const struct table *t)
{
    struct buf b = BUF_INIT;
    text_add_when(&b, s->o->began_ns, s->o->elapsed_ns);
    add_change(&b, &s->total, s->o->shape.seconds);
    buf_addstr(&b, " a second, ");
    text_add_shown(&b, table_rows(t), s->rows.all.len);
    write_line(out, &b);
    buf_release(&b);
}

/* Columns that say nothing where all is accurate. */
static void hide_inexact(const struct shown *s, struct table *t)
{
    if (!s->total.of[ALLOC_BEFORE].inexact && !s->total.of[ALLOC_AFTER].inexact)
        t->hidden |= 1ull << ALLOC_INEXACT | 1ull << ALLOC_ACCURATE;
}

static void write_screen(const struct shown *s, struct sink *out, struct table *t)
{
    bool rates = s->o->shape.view == ALLOC_RATE;
    if (rates)
        write_interval(s, out, t);
    else
        write_heading(s, out);
    hide_inexact(s, t);
    if (table_rows(t))
        table_view_text(out, t, &s->o->style);
    if (rates)
        sink_char(out, '\n');
}

/* A reader that has gone is told nothing. */
static void note_cut(const struct shown *s, struct sink *out, const struct table *t)
{
    if (s->o->shape.view != ALLOC_RATE && !sink_finish(out))
        notes_add_cut(s->notes, table_rows(t), s->rows.all.len);
}

/* ---- JSON ---- */

static void write_sum(struct json *j, const struct alloc_sum *sum)
{
    json_whole(j, "sites", sum->sites);
    json_whole(j, "inexact", sum->inexact);
    json_signed(j, "size_bytes", sum->bytes);
    json_whole(j, "calls", sum->calls);
}

static void write_reading(struct json *j, const struct shown *s, enum alloc_moment moment)
{
    const char *key = moment == ALLOC_BEFORE ? "before" : "after";
    const struct allocinfo_reading *r = s->of[moment];
    char format[32];
    if (!r) {
        json_null(j, key);
        return;
    }
    snprintf(format, sizeof(format), "%u.%u", r->info.version, r->info.minor);
    json_open(j, key, '{');
    json_text(j, "source", r->source);
    json_text(j, "format", format);
    write_sum(j, &s->whole.of[moment]);
    json_whole(j, "malformed_lines", r->info.bad_lines);
    json_open(j, "malformed", '[');
    for (uint64_t i = 0; i < r->info.bad_lines && i < ALLOC_BAD_KEPT; i++) {
        json_open(j, NULL, '{');
        json_whole(j, "line", r->info.bad[i].line);
        json_text(j, "why", r->info.bad[i].why);
        json_close(j, '}');
    }
    json_close(j, ']');
    json_flag(j, "cut", r->info.cut);
    json_close(j, '}');
}

static void write_total(struct json *j, const struct shown *s)
{
    const struct alloc_row *total = &s->total;
    json_open(j, "total", '{');
    write_sum(j, &total->of[ALLOC_AFTER]);
    if (s->o->shape.view == ALLOC_CHANGE) {
        json_signed(j, "before_bytes", total->of[ALLOC_BEFORE].bytes);
        json_signed(j, "change_bytes", alloc_bytes_change(total));
        json_signed(j, "calls_change", alloc_calls_change(total));
    } else if (s->o->shape.view == ALLOC_RATE) {
        json_real(j, "size_bytes_per_s", (double)alloc_bytes_change(total) / s->o->shape.seconds);
        json_real(j, "calls_per_s", (double)alloc_calls_change(total) / s->o->shape.seconds);
    }
    json_close(j, '}');
}

static void write_json(const struct shown *s, struct sink *out, const struct table *t)
{
    static const char *const views[] = {
        [ALLOC_NOW] = "held", [ALLOC_CHANGE] = "change", [ALLOC_RATE] = "rate"};
    struct json j = {.out = out, .line = s->o->line};
    json_open(&j, NULL, '{');
    json_text(&j, "schema", "allium-allocinfo");
    json_whole(&j, "version", t->version);
    json_text(&j, "view", views[s->o->shape.view]);
    json_instant(&j, "time_ns", s->o->time_ns);
    if (s->o->elapsed_ns)
        json_whole(&j, "interval_ns", s->o->elapsed_ns);
    else
        json_null(&j, "interval_ns");
    json_text(&j, "filter", s->o->query ? query_text(s->o->query) : NULL);
    json_text(&j, "group", s->o->group);
    json_text(&j, "sort", alloc_columns[s->o->shape.sort].name);
    write_reading(&j, s, ALLOC_BEFORE);
    write_reading(&j, s, ALLOC_AFTER);
    write_total(&j, s);
    json_whole(&j, "rows_in_all", s->rows.all.len);
    table_view_json_rows(&j, "rows", t);
    json_close(&j, '}');
}

/* ---- the kernel's text ---- */

static void write_kernel_text(const struct shown *s, struct sink *out)
{
    allocinfo_write_head(out);
    vec_each (const struct alloc_row, row, &s->rows.all) {
        const struct alloc_sum *sum = &row->of[ALLOC_AFTER];
        struct allocinfo_row r = {.bytes = sum->bytes,
                                  .calls = sum->calls,
                                  .file = alloc_texts_get(s->texts, row->key.file),
                                  .line = row->key.line,
                                  .module = alloc_texts_get(s->texts, row->key.module),
                                  .function = alloc_texts_get(s->texts, row->key.function),
                                  .accurate = !sum->inexact};
        allocinfo_write_row(out, &r);
    }
}

/* ---- all of it ---- */

static void add_up(struct alloc_row *to, const struct alloc_rows *rows)
{
    for (int moment = 0; moment < ALLOC_MOMENTS; moment++)
        to->of[moment] = alloc_rows_total(rows, (enum alloc_moment)moment);
}

/* What is asked for of all sites: it lies in `rows`. */
static void choose(struct shown *s)
{
    for (int moment = 0; moment < ALLOC_MOMENTS; moment++)
        if (s->of[moment])
            alloc_rows_add(&s->sites, &s->of[moment]->info.sites, (enum alloc_moment)moment);
    add_up(&s->whole, &s->sites);
    if (s->o->query)
        alloc_rows_keep(&s->sites, s->o->query, s->texts);
    add_up(&s->total, &s->sites);
    if (s->o->shape.group == ALLOC_BY_SITE) {
        s->rows = s->sites;
        s->sites = (struct alloc_rows){{0}};
    } else {
        alloc_rows_group(&s->rows, &s->sites, s->o->shape.group, s->texts);
    }
    if (s->o->shape.view != ALLOC_NOW)
        alloc_rows_keep_changed(&s->rows);
}

void allocinfo_view_write(struct sink *out, const struct allocinfo_view *o, struct alloc_texts *texts,
                          const struct allocinfo_reading *before, const struct allocinfo_reading *after,
                          struct buf *notes)
{
    struct shown s = {.o = o, .texts = texts, .of = {before, after}, .notes = notes};
    choose(&s);
    if (o->kernel_text) {
        write_kernel_text(&s, out);
    } else {
        struct alloc_shape shape = o->shape;
        shape.built_in = !o->json && shape.group == ALLOC_BY_MODULE ? "(built-in)" : NULL;
        struct table *t = alloc_table_new(&s.rows, texts, &shape);
        if (o->json) {
            write_json(&s, out, t);
        } else {
            write_screen(&s, out, t);
            note_cut(&s, out, t);
        }
        table_free(t);
    }
    alloc_rows_release(&s.sites);
    alloc_rows_release(&s.rows);
}

void allocinfo_view_note_losses(struct buf *notes, const struct allocinfo_reading *r)
{
    const struct alloc_listing *a = &r->info;
    struct buf b = BUF_INIT;
    if (a->bad_lines) {
        text_add_words(&b, a->bad_lines, "line{s} {was|were} skipped");
        for (uint64_t i = 0; i < a->bad_lines && i < ALLOC_BAD_KEPT; i++)
            buf_printf(&b, "%s line %" PRIu64 ": %s", i ? ";" : ":", a->bad[i].line, a->bad[i].why);
        if (a->bad_lines > ALLOC_BAD_KEPT)
            buf_addstr(&b, "; and more");
    }
    if (a->cut)
        buf_printf(&b, "%sthe last line has no end: what came behind it may be missing", b.len ? "; " : "");
    if (b.len)
        notes_add(notes, "%s: %s", r->source, buf_str(&b));
    buf_release(&b);
}
