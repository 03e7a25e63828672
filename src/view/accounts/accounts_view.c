/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/accounts/accounts_view.h"

#include <inttypes.h>
#include <string.h>

#include "base/units.h"
#include "view/formats/allocinfo_text.h"
#include "view/formats/json.h"
#include "view/formats/openmetrics.h"
#include "view/table/table_view.h"
#include "view/text/notes.h"

/* All that is shown of one look. */
struct shown {
    const struct accounts_view *o;
    struct alloc_texts *texts;
    const struct accounts_reading *of[ACCOUNT_MOMENTS];
    struct account_row whole; /* sums of all that was read */
    struct account_row total; /* of what the query holds for */
    struct account_rows places, rows;
    struct buf *notes;
};

/* ---- the screen ---- */

static void write_line(struct sink *out, struct buf *b)
{
    sink_printf(out, "%s\n", buf_str(b));
    buf_reset(b);
}

/* "8 places hold 12.3 MiB in 45 objects" */
static void add_sum(struct buf *b, const struct account_sum *sum)
{
    int64_t objects = account_live_objects(sum);
    text_add_number(b, sum->places, "place");
    buf_addstr(b, sum->places == 1 ? " holds " : " hold ");
    table_view_add_quantity(b, TABLE_BYTES, (double)account_live_bytes(sum));
    buf_printf(b, " in %lld object%s", (long long)objects, objects == 1 ? "" : "s");
}

/* "total bytes allocated: ... requested: ... slack: ... (x.x %)   allocations: ...  frees: ...  callers: ..." */
static void add_site_sum(struct buf *b, const struct account_sum *sum)
{
    const uint64_t *of = sum->of;
    bool known = account_slack_is_known(sum);
    double requested = (double)of[ACCOUNT_MADE_BYTES],
           total = known ? (double)of[ACCOUNT_MADE_USABLE] : requested;
    double slack = total - requested;
    buf_addstr(b, "total bytes allocated: ");
    table_view_add_quantity(b, TABLE_BYTES, total);
    buf_addstr(b, "  requested: ");
    table_view_add_quantity(b, TABLE_BYTES, (double)of[ACCOUNT_MADE_BYTES]);
    buf_addstr(b, "  slack: ");
    if (known) {
        table_view_add_quantity(b, TABLE_BYTES, slack);
        buf_printf(b, " (%.1f %%)", total > 0 ? slack * 100 / total : 0);
    } else {
        buf_addstr(b, "unknown");
    }
    buf_printf(b, "   allocations: %" PRIu64 "  frees: %" PRIu64 "  callers: %" PRIu32,
               of[ACCOUNT_MADE_CALLS], of[ACCOUNT_GONE_CALLS], sum->places);
}

/* "freed: ...  frees: ...  callers: ..." */
static void add_freed_sum(struct buf *b, const struct account_sum *sum)
{
    buf_addstr(b, "bytes freed: ");
    table_view_add_quantity(b, TABLE_BYTES, (double)sum->of[ACCOUNT_FREED_HERE_BYTES]);
    buf_printf(b, "  frees: %" PRIu64 "  callers: %" PRIu32, sum->of[ACCOUNT_FREED_HERE_CALLS], sum->places);
}

static void add_sum_of(const struct shown *s, struct buf *b, const struct account_sum *sum)
{
    if (s->o->shape.kind == ACCOUNT_OF_TAGS)
        add_sum(b, sum);
    else if (s->o->shape.kind == ACCOUNT_OF_SITES)
        add_site_sum(b, sum);
    else
        add_freed_sum(b, sum);
}

/* "server (pid 4711), running"; of several processes, their number. */
static void add_whose(struct buf *b, const struct text_style *style, const struct accounts_reading *r)
{
    const struct account_process *p = r->accounts.processes.at;
    size_t n = r->accounts.processes.len, running = 0;
    vec_each (const struct account_process, each, &r->accounts.processes)
        running += each->alive;
    if (r->label) {
        text_add_name(b, style, r->label);
        buf_addstr(b, n ? ", " : "");
    }
    if (n == 1) {
        text_add_name(b, style, p->comm);
        buf_printf(b, " (pid %d), %s", (int)p->pid, p->alive ? "running" : "ended");
    } else {
        text_add_number(b, n, NULL);
        buf_printf(b, " processes, %zu running", running);
    }
}

static void add_change(struct buf *b, const struct account_row *total)
{
    const struct account_sum *before = &total->of[ACCOUNT_BEFORE], *after = &total->of[ACCOUNT_AFTER];
    text_add_change(b, (double)(account_live_bytes(after) - account_live_bytes(before)), TEXT_BYTES);
    buf_addstr(b, " and ");
    text_add_change(b, (double)(account_live_objects(after) - account_live_objects(before)), TEXT_COUNT);
    buf_addstr(b, " objects live, ");
    text_add_change(b, (double)(int64_t)(after->of[ACCOUNT_MADE_BYTES] - before->of[ACCOUNT_MADE_BYTES]),
                    TEXT_BYTES);
    buf_addstr(b, " in ");
    text_add_change(b, (double)(int64_t)(after->of[ACCOUNT_MADE_CALLS] - before->of[ACCOUNT_MADE_CALLS]),
                    TEXT_COUNT);
    buf_addstr(b, " allocations");
}

static void write_heading(const struct shown *s, struct sink *out)
{
    struct buf b = BUF_INIT;
    for (int moment = ACCOUNT_BEFORE; moment < ACCOUNT_MOMENTS; moment++) {
        if (!s->of[moment])
            continue;
        add_whose(&b, &s->o->style, s->of[moment]);
        if (s->o->shape.kind == ACCOUNT_OF_TAGS)
            buf_addstr(&b, ": ");
        if (s->o->shape.kind != ACCOUNT_OF_TAGS)
            write_line(out, &b);
        add_sum_of(s, &b, &s->whole.of[moment]);
        write_line(out, &b);
    }
    if (s->o->query) {
        buf_addstr(&b, "where ");
        text_add_name(&b, &s->o->style, query_text(s->o->query));
        buf_addstr(&b, ": ");
        add_sum_of(s, &b, &s->total.of[ACCOUNT_AFTER]);
        write_line(out, &b);
    }
    if (s->o->shape.view == ACCOUNT_CHANGE) {
        char took[UNITS_TEXT_BYTES];
        add_change(&b, &s->total);
        if (s->o->shape.seconds > 0)
            buf_printf(&b, ", in %s", units_format_duration(took, s->o->shape.seconds * 1e9));
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
    add_change(&b, &s->total);
    buf_addstr(&b, "; ");
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
    accounts_table_for_screen(t, &s->o->shape);
    if (table_rows(t))
        table_view_text(out, t, &s->o->style);
    if (rates)
        sink_char(out, '\n');
}

/* A reader that has gone is told nothing. */
static void note_cut(const struct shown *s, struct sink *out, const struct table *t)
{
    if (s->o->shape.view != ACCOUNT_RATE && !sink_finish(out))
        notes_add_cut(s->notes, table_rows(t), s->rows.len);
}

/* ---- JSON ---- */

static void write_sum(struct json *j, const char *key, const struct account_sum *sum, bool of_sites)
{
    json_open(j, key, '{');
    json_whole(j, "places", sum->places);
    json_whole(j, "inexact", sum->inexact);
    json_signed(j, "live_bytes", account_live_bytes(sum));
    json_signed(j, "live_objects", account_live_objects(sum));
    if (sum->of[ACCOUNT_PEAK_BYTES]) {
        json_whole(j, "peak_bytes", sum->of[ACCOUNT_PEAK_BYTES]);
        json_whole(j, "peak_high_bytes", sum->of[ACCOUNT_PEAK_HIGH_BYTES]);
    }
    json_whole(j, "allocated_bytes", sum->of[ACCOUNT_MADE_BYTES]);
    json_whole(j, "allocations", sum->of[ACCOUNT_MADE_CALLS]);
    json_whole(j, "failed", sum->of[ACCOUNT_FAILED]);
    if (of_sites) {
        if (account_slack_is_known(sum))
            json_whole(j, "total_bytes", sum->of[ACCOUNT_MADE_USABLE]);
        else
            json_null(j, "total_bytes");
        json_whole(j, "frees", sum->of[ACCOUNT_GONE_CALLS]);
        json_whole(j, "freed_here_bytes", sum->of[ACCOUNT_FREED_HERE_BYTES]);
        json_whole(j, "frees_here", sum->of[ACCOUNT_FREED_HERE_CALLS]);
    }
    json_close(j, '}');
}

static void write_process(struct json *j, const struct account_process *p)
{
    static const char *const losses[ACCOUNT_LOSSES] = {
        [ACCOUNT_LOST_PLACES] = "lost_places",      [ACCOUNT_LOST_OBJECTS] = "lost_objects",
        [ACCOUNT_LOST_FREES] = "lost_frees_unseen", [ACCOUNT_LOST_RECORDS] = "damaged_records",
        [ACCOUNT_FOREIGN_FREES] = "foreign_frees",  [ACCOUNT_LOST_VERSIONS] = "other_version"};
    json_open(j, NULL, '{');
    json_whole(j, "pid", (uint64_t)p->pid);
    json_text(j, "program", p->comm);
    json_flag(j, "running", p->alive);
    json_hex(j, "image", p->image_id);
    json_instant(j, "taken_ns", p->taken_ns);
    for (int i = 0; i < ACCOUNT_LOSSES; i++)
        json_whole(j, losses[i], p->losses[i]);
    json_close(j, '}');
}

static void write_reading(struct json *j, const struct shown *s, enum account_moment moment)
{
    const char *key = moment == ACCOUNT_BEFORE ? "before" : "after";
    const struct accounts_reading *r = s->of[moment];
    if (!r) {
        json_null(j, key);
        return;
    }
    json_open(j, key, '{');
    json_text(j, "source", r->label);
    json_open(j, "processes", '[');
    vec_each (const struct account_process, p, &r->accounts.processes)
        write_process(j, p);
    json_close(j, ']');
    write_sum(j, "total", &s->whole.of[moment], s->o->shape.kind == ACCOUNT_OF_SITES);
    write_sum(j, "where", &s->total.of[moment], s->o->shape.kind == ACCOUNT_OF_SITES);
    json_close(j, '}');
}

static void write_json(const struct shown *s, struct sink *out, const struct table *t)
{
    static const char *const views[] = {
        [ACCOUNT_NOW] = "now", [ACCOUNT_CHANGE] = "change", [ACCOUNT_RATE] = "rate"};
    struct buf schema = BUF_INIT;
    struct json j = {.out = out, .line = s->o->line};
    buf_printf(&schema, "allium-%s", t->name);
    json_open(&j, NULL, '{');
    json_text(&j, "schema", buf_str(&schema));
    json_whole(&j, "version", t->version);
    json_text(&j, "view", views[s->o->shape.view]);
    json_real(&j, "seconds", s->o->shape.seconds);
    json_text(&j, "filter", s->o->query ? query_text(s->o->query) : NULL);
    json_text(&j, "group", s->o->group);
    json_text(&j, "sort", s->o->order);
    write_reading(&j, s, ACCOUNT_BEFORE);
    write_reading(&j, s, ACCOUNT_AFTER);
    json_whole(&j, "rows_in_all", s->rows.len);
    table_view_json_rows(&j, "rows", t);
    json_close(&j, '}');
    buf_release(&schema);
}

/* ---- the kernel's text ---- */

static void write_kernel_text(const struct shown *s, struct sink *out)
{
    allocinfo_write_head(out);
    vec_each (const struct account_row, row, &s->rows) {
        const struct account_sum *sum = &row->of[ACCOUNT_AFTER];
        const char *module = alloc_texts_get(s->texts, row->key.module),
                   *slash = module ? strrchr(module, '/') : NULL;
        struct allocinfo_row r = {.bytes = account_live_bytes(sum),
                                  .calls = (uint64_t)account_live_objects(sum),
                                  .file = alloc_texts_get(s->texts, row->key.file),
                                  .line = row->key.line,
                                  .module = slash ? slash + 1 : module,
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

static void add_up(struct account_row *to, const struct account_rows *rows)
{
    for (int moment = 0; moment < ACCOUNT_MOMENTS; moment++)
        to->of[moment] = account_rows_total(rows, (enum account_moment)moment);
}

/* What is asked for of all places: it lies in `rows`. */
static void choose(struct shown *s)
{
    const struct accounts_view *o = s->o;
    const struct accounts_reading *before = s->of[ACCOUNT_BEFORE];
    bool processes =
        o->shape.group == ACCOUNT_BY_PROCESS || (o->query && account_query_needs_processes(o->query));
    account_rows_join(&s->places, before ? &before->accounts : NULL, &s->of[ACCOUNT_AFTER]->accounts,
                      processes);
    accounts_table_choose(&s->places, &o->shape);
    add_up(&s->whole, &s->places);
    if (o->query)
        account_rows_keep(&s->places, o->query, s->texts);
    add_up(&s->total, &s->places);
    account_rows_group(&s->rows, &s->places, o->shape.group, s->texts);
    if (o->shape.view != ACCOUNT_NOW)
        account_rows_keep_changed(&s->rows);
}

static void write_table(struct shown *s, struct sink *out)
{
    struct table *t = accounts_table_new(&s->rows, s->texts, &s->o->shape);
    if (s->o->format == ACCOUNTS_JSON) {
        write_json(s, out, t);
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
    bool fits = s.places.len || !o->query;
    if (o->format == ACCOUNTS_ALLOCINFO)
        write_kernel_text(&s, out);
    else if (o->format == ACCOUNTS_OPENMETRICS)
        write_openmetrics(&s, out);
    else
        write_table(&s, out);
    vec_release(&s.places);
    vec_release(&s.rows);
    return fits;
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
