/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/accounts/accounts_view.h"

#include <inttypes.h>
#include <string.h>

#include "base/units.h"
#include "model/accounts/allocinfo_table.h"
#include "view/accounts/accounts_shown.h"
#include "view/formats/allocinfo_text.h"
#include "view/formats/openmetrics.h"
#include "view/table/table_view.h"
#include "view/text/notes.h"

/* ---- the screen ---- */

static void write_line(struct sink *out, struct buf *b)
{
    sink_printf(out, "%s\n", buf_str(b));
    buf_reset(b);
}

/* "server (pid 4711), running"; of several processes, their number; of a text, its version. */
static void add_source(struct buf *b, const struct text_style *style, const struct accounts_reading *r)
{
    const struct account_process *p = r->accounts.processes.at;
    size_t n = r->accounts.processes.len, running = 0;
    vec_each (const struct account_process, each, &r->accounts.processes)
        running += each->alive;
    if (r->label) {
        text_add_name(b, style, r->label);
        buf_addstr(b, n || r->accounts.text.version ? ", " : "");
    }
    if (r->accounts.text.version) {
        buf_printf(b, "version %u.%u", r->accounts.text.version, r->accounts.text.minor);
    } else if (n == 1) {
        text_add_name(b, style, p->comm);
        buf_printf(b, " (pid %d), %s", (int)p->pid, p->alive ? "running" : "ended");
    } else {
        text_add_number(b, n, NULL);
        buf_printf(b, " processes, %zu running", running);
    }
}

static void add_total_change(const struct shown *s, struct buf *b)
{
    char took[UNITS_TEXT_BYTES];
    bool kernel = s->o->shape.kind == ACCOUNT_OF_KERNEL;
    if (kernel)
        buf_addstr(b, "change\n  ");
    accounts_add_change(b, &s->o->shape, &s->total);
    if (!kernel && s->o->shape.seconds > 0)
        buf_printf(b, ", in %s", units_format_duration(took, s->o->shape.seconds * 1e9));
}

static void write_heading(const struct shown *s, struct sink *out)
{
    static const char *const after_source[] = {[ACCOUNT_OF_TAGS] = ": ",
                                               [ACCOUNT_OF_SITES] = "\n",
                                               [ACCOUNT_OF_SITES_FREED] = "\n",
                                               [ACCOUNT_OF_KERNEL] = "\n  "};
    const struct account_shape *shape = &s->o->shape;
    struct buf b = BUF_INIT;
    for (int moment = ACCOUNT_BEFORE; moment < ACCOUNT_MOMENTS; moment++) {
        if (!s->of[moment])
            continue;
        add_source(&b, &s->o->style, s->of[moment]);
        buf_addstr(&b, after_source[shape->kind]);
        accounts_add_sum(&b, shape, &s->whole.of[moment]);
        write_line(out, &b);
    }
    if (s->o->query) {
        buf_addstr(&b, "where ");
        text_add_name(&b, &s->o->style, query_text(s->o->query));
        buf_addstr(&b, shape->kind == ACCOUNT_OF_KERNEL ? "\n  " : ": ");
        accounts_add_sum(&b, shape, &s->total.of[ACCOUNT_AFTER]);
        write_line(out, &b);
    }
    if (shape->view == ACCOUNT_CHANGE) {
        add_total_change(s, &b);
        write_line(out, &b);
    }
    sink_char(out, '\n');
    buf_release(&b);
}

/* "--- 5.00 s after the start, the last 5.00 s: ..., 20 of 45 rows" */
static void write_interval(const struct shown *s, struct sink *out, const struct table *t)
{
    struct buf b = BUF_INIT;
    text_add_when(&b, s->o->began_ns, s->o->elapsed_ns);
    accounts_add_change(&b, &s->o->shape, &s->total);
    buf_addstr(&b, s->o->shape.kind == ACCOUNT_OF_KERNEL ? " a second, " : "; ");
    text_add_shown(&b, table_rows(t), s->rows.len);
    write_line(out, &b);
    buf_release(&b);
}

static void write_screen(const struct shown *s, struct sink *out, struct table *t)
{
    bool rates = s->o->shape.view == ACCOUNT_RATE;
    if (rates)
        write_interval(s, out, t);
    else
        write_heading(s, out);
    if (s->o->shape.kind == ACCOUNT_OF_KERNEL)
        allocinfo_table_for_screen(t, &s->total);
    else
        accounts_table_for_screen(t, &s->o->shape);
    if (table_rows(t))
        table_view_text(out, t, &s->o->style);
    if (rates)
        sink_char(out, '\n');
}

/* Adds no note if the reader of the report has closed the pipe. */
static void note_cut(const struct shown *s, struct sink *out, const struct table *t)
{
    if (s->o->shape.view != ACCOUNT_RATE && !sink_finish(out))
        notes_add_cut(s->notes, table_rows(t), s->rows.len);
}

/* ---- the kernel's text ---- */

static void write_kernel_text(const struct shown *s, struct sink *out)
{
    bool kernel = s->o->shape.kind == ACCOUNT_OF_KERNEL;
    allocinfo_write_head(out);
    vec_each (const struct account_row, row, &s->rows) {
        const struct account_sum *sum = &row->of[ACCOUNT_AFTER];
        const char *module = alloc_texts_get(s->texts, row->key.module),
                   *slash = module ? strrchr(module, '/') : NULL;
        struct allocinfo_row r = {.bytes = account_live_bytes(sum),
                                  .calls = (uint64_t)account_live_objects(sum),
                                  .file = alloc_texts_get(s->texts, row->key.file),
                                  .line = row->key.line,
                                  .module = slash && !kernel ? slash + 1 : module,
                                  .function = alloc_texts_get(s->texts, row->key.function),
                                  .accurate = !sum->inexact};
        allocinfo_write_row(out, &r);
    }
}

static void write_openmetrics(const struct shown *s, struct sink *out)
{
    struct buf prefix = BUF_INIT;
    buf_printf(&prefix, "allium_%s", s->o->shape.schema);
    struct openmetrics_options o = {
        .prefix = buf_str(&prefix), .top = s->o->shape.top, .usable = s->o->shape.kind != ACCOUNT_OF_TAGS};
    openmetrics_write(out, &s->rows, s->texts, &s->of[ACCOUNT_AFTER]->accounts, &o);
    buf_release(&prefix);
}

/* ---- all of it ---- */

static struct account_row total_of(const struct shown *s)
{
    struct account_row total = {0};
    for (int moment = s->of[ACCOUNT_BEFORE] ? ACCOUNT_BEFORE : ACCOUNT_AFTER; moment < ACCOUNT_MOMENTS;
         moment++)
        total.of[moment] = account_rows_total(&s->places, (enum account_moment)moment);
    return total;
}

static void select_rows(struct shown *s)
{
    if (s->o->shape.kind == ACCOUNT_OF_KERNEL)
        account_rows_keep_kernel(&s->places, s->o->query, s->texts);
    else
        account_rows_keep(&s->places, s->o->query, s->texts);
}

/* Puts the rows of the report into `rows`: the places that match the query, grouped. */
static void choose(struct shown *s)
{
    const struct accounts_view *o = s->o;
    const struct accounts_reading *before = s->of[ACCOUNT_BEFORE];
    unsigned parts =
        o->shape.kind == ACCOUNT_OF_KERNEL ? ACCOUNT_PART_FUNCTION
        : o->shape.group == ACCOUNT_BY_PROCESS || (o->query && account_query_needs_processes(o->query))
            ? ACCOUNT_PART_PROCESS
            : 0;
    account_rows_join(&s->places, before ? &before->accounts : NULL, &s->of[ACCOUNT_AFTER]->accounts, parts);
    accounts_table_choose(&s->places, &o->shape);
    s->total = s->whole = total_of(s);
    if (o->query) {
        select_rows(s);
        s->total = total_of(s);
    }
    s->fits = s->places.len || !o->query;
    if (o->shape.group == ACCOUNT_BY_PLACE && parts != ACCOUNT_PART_PROCESS) {
        s->rows = s->places;
        s->places = (struct account_rows){0};
    } else {
        account_rows_group(&s->rows, &s->places, o->shape.group, s->texts);
    }
    if (o->shape.view != ACCOUNT_NOW)
        account_rows_keep_changed(&s->rows);
}

static struct table *make_table(const struct shown *s)
{
    struct account_shape shape = s->o->shape;
    if (shape.kind != ACCOUNT_OF_KERNEL)
        return accounts_table_new(&s->rows, s->texts, &shape);
    if (s->o->format == ACCOUNTS_SCREEN && shape.group == ACCOUNT_BY_MODULE)
        shape.built_in = "(built-in)";
    return allocinfo_table_new(&s->rows, s->texts, &shape);
}

static void write_table(struct shown *s, struct sink *out)
{
    struct table *t = make_table(s);
    if (s->o->format == ACCOUNTS_JSON) {
        accounts_json_write(s, out, t);
    } else {
        write_screen(s, out, t);
        note_cut(s, out, t);
    }
    table_free(t);
}

bool accounts_view_write(struct sink *out, const struct accounts_view *o, struct alloc_texts *texts,
                         const struct accounts_reading *before, const struct accounts_reading *after,
                         struct buf *notes)
{
    struct shown s = {.o = o, .texts = texts, .of = {before, after}, .notes = notes};
    choose(&s);
    for (size_t i = 0; i < o->n_growth; i++)
        account_growth_measure(&o->growth[i], &s.total);
    if (o->format == ACCOUNTS_ALLOCINFO)
        write_kernel_text(&s, out);
    else if (o->format == ACCOUNTS_OPENMETRICS)
        write_openmetrics(&s, out);
    else
        write_table(&s, out);
    vec_release(&s.places);
    vec_release(&s.rows);
    return s.fits;
}

struct table *accounts_view_table(const struct accounts_view *o, struct alloc_texts *texts,
                                  const struct accounts_reading *before, const struct accounts_reading *after)
{
    struct accounts_view all = *o;
    struct buf notes = BUF_INIT;
    all.shape.top = 0;
    all.format = ACCOUNTS_JSON;
    struct shown s = {.o = &all, .texts = texts, .of = {before, after}, .notes = &notes};
    choose(&s);
    struct table *t = make_table(&s);
    vec_release(&s.places);
    vec_release(&s.rows);
    buf_release(&notes);
    return t;
}

void accounts_view_note_losses(struct buf *notes, const struct accounts *a,
                               const char *const words[static ACCOUNT_LOSSES])
{
    uint64_t losses[ACCOUNT_LOSSES] = {0};
    vec_each (const struct account_process, p, &a->processes)
        for (int i = 0; i < ACCOUNT_LOSSES; i++)
            losses[i] += p->losses[i];
    for (int i = 0; i < ACCOUNT_LOSSES; i++)
        notes_add_count(notes, losses[i], words[i]);
}

void accounts_view_note_bad_lines(struct buf *notes, const struct accounts_reading *r)
{
    const struct account_text *a = &r->accounts.text;
    struct buf b = BUF_INIT;
    if (a->bad_lines) {
        text_add_words(&b, a->bad_lines, "line{s} {was|were} skipped");
        for (uint64_t i = 0; i < a->bad_lines && i < ACCOUNT_BAD_LINES; i++)
            buf_printf(&b, "%s line %" PRIu64 ": %s", i ? ";" : ":", a->bad[i].line, a->bad[i].why);
        if (a->bad_lines > ACCOUNT_BAD_LINES)
            buf_addstr(&b, "; and more");
    }
    if (a->cut)
        buf_printf(&b, "%sthe last line is incomplete: the rest may be missing", b.len ? "; " : "");
    if (b.len)
        notes_add(notes, "%s: %s", r->label, buf_str(&b));
    buf_release(&b);
}
