/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/profile/watch_view.h"

#include <math.h>
#include <stdio.h>

#include "base/units.h"
#include "view/profile/common.h"
#include "view/profile/report_parts.h"
#include "view/text/columns.h"

#define INDENT       4
#define FRAMES_AGAIN 2 /* shown frames of a stack that was listed before and has only more samples */

static void add_pid(struct buf *b, int32_t pid)
{
    if (pid)
        buf_printf(b, " (%d)", pid);
    else
        buf_addstr(b, " (process id not visible here)");
}

static void add_process(struct buf *b, const struct watch_snapshot_image *i, const struct text_style *style)
{
    const struct profile *p = i->profile;
    if (p->images.len != 1) {
        buf_printf(b, "%zu processes", p->images.len);
        return;
    }
    text_add_name(b, style, profile_text(p, p->images.at[0].comm));
    add_pid(b, p->images.at[0].pid);
}

/*
 * ", live 99.0 MiB (86.3-114), older than 5m00s 32.0 MiB (24.7-40.9)". older_than_ns is UINT64_MAX if the processes
 * differ in it: then no age is printed.
 */
static void add_sums(struct buf *b, uint64_t older_than_ns, bool half_its_age, const struct estimate *live,
                     const struct estimate *old, const struct text_style *style)
{
    char age[UNITS_TEXT_BYTES];
    buf_addstr(b, ": live ");
    text_add_figure(b, style, live, TEXT_BYTES);
    if (older_than_ns == UINT64_MAX)
        buf_addstr(b, ", old ");
    else
        buf_printf(b, ", older than %s%s ", units_format_duration(age, (double)older_than_ns),
                   half_its_age ? ", half its age," : "");
    text_add_figure(b, style, old, TEXT_BYTES);
}

static void add_dismissed(struct buf *b, uint64_t n)
{
    if (!n)
        return;
    buf_addstr(b, ", ");
    text_add_number(b, n, "sample");
    buf_addstr(b, " dismissed");
}

static void begin_line(struct sink *out, const struct watch_snapshot *l)
{
    struct buf b = BUF_INIT;
    text_add_instant(&b, l->time_ns);
    sink_printf(out, "%s  ", buf_str(&b));
    buf_release(&b);
}

/* Writes one line for all processes without a change. */
static void write_quiet(struct sink *out, const struct watch_snapshot *l, const struct watch_view *v)
{
    struct estimate live = {0}, old = {0};
    const struct watch_snapshot_image *last = NULL;
    uint64_t dismissed = 0, older_than_ns = 0;
    size_t n = 0;
    vec_each (const struct watch_snapshot_image, i, &l->images) {
        if (i->began || i->changed)
            continue;
        estimate_merge(&live, &i->live);
        estimate_merge(&old, watch_snapshot_old(i));
        dismissed += i->dismissed;
        older_than_ns = !n || older_than_ns == i->older_than_ns ? i->older_than_ns : UINT64_MAX;
        last = i;
        n++;
    }
    struct buf b = BUF_INIT;
    if (n == 1)
        add_process(&b, last, &v->style);
    else
        buf_printf(&b, "%zu processes", n);
    add_sums(&b, older_than_ns, false, &live, &old, &v->style);
    add_dismissed(&b, dismissed);
    begin_line(out, l);
    sink_printf(out, "%s, nothing new\n", buf_str(&b));
    buf_release(&b);
}

/* ---- rows ---- */

/* "+1.20 MiB/h (0.80-1.60)": both ends in the unit of the value. */
static void add_slope(struct buf *b, const struct growth *g, const struct text_style *style)
{
    static const struct {
        const char *name;
        double bytes;
    } units[] = {{"GiB", 0x1p30}, {"MiB", 0x1p20}, {"KiB", 0x1p10}, {"B", 1}};
    size_t k = 0;
    while (k < 3 && fabs(g->bytes_per_hour) < units[k].bytes)
        k++;
    double value = g->bytes_per_hour / units[k].bytes;
    int decimals = fabs(value) >= 99.95 || k == 3 ? 0 : fabs(value) >= 9.995 ? 1 : 2;
    buf_printf(b, "%+.*f %s/h", decimals, value, units[k].name);
    if (g->interval.low < g->interval.high)
        buf_printf(b, " (%.*f%s%.*f)", decimals, g->interval.low / units[k].bytes, text_dash(style), decimals,
                   g->interval.high / units[k].bytes);
}

/* Adds the slope and the length of the stretch: "+1.20 MiB/h (0.80-1.60) over 1h20m". */
static void add_growth(struct buf *b, const struct watch_snapshot_image *i, const struct growth *g,
                       const struct text_style *style)
{
    uint64_t since_ns =
        g->since_ns +
        i->older_than_ns; /* a time of allocations; the stretch ends at the snapshot less the age */
    uint64_t over_ns = i->profile->taken_ns > since_ns ? i->profile->taken_ns - since_ns : 0;
    char over[UNITS_TEXT_BYTES];
    add_slope(b, g, style);
    buf_printf(b, " over %s", units_format_duration(over, (double)over_ns));
}

static void add_marks(struct buf *b, const struct watch_snapshot_image *i,
                      const struct watch_snapshot_row *row, const struct text_style *style)
{
    if (row->is_new)
        buf_addstr(b, "new");
    if (row->growth.growing) {
        buf_addstr(b, row->is_new ? ", growing " : "growing ");
        add_growth(b, i, &row->growth, style);
    } else if (row->turned) {
        buf_addstr(b, row->is_new ? ", no longer growing" : "no longer growing");
    } else if (row->growth.so_far) {
        buf_addstr(b, row->is_new ? ", so far " : "so far ");
        add_slope(b, &row->growth, style);
        buf_printf(b, ", snapshot %u of %d", row->growth.snapshots, GROWTH_SNAPSHOTS);
    }
}

static bool is_shown(const struct watch_snapshot *l, const struct watch_snapshot_image *i,
                     const struct watch_snapshot_row *row)
{
    return l->kind != WATCH_SNAPSHOT_CHANGES || i->began || row->fresh_samples || row->is_new || row->turned;
}

static void add_columns(struct columns *g)
{
    static const struct columns_column columns[] = {
        {.header = "OLD", .look = TEXT_STRONG}, {.header = "95 % INTERVAL", .drop_rank = 1},
        {.header = "SAMPLES", .drop_rank = 3},  {.header = "FRESH", .drop_rank = 2},
        {.header = "OLDEST", .drop_rank = 4},   {.header = "MARKS", .left = true, .look = TEXT_ALARM},
    };
    for (size_t k = 0; k < sizeof(columns) / sizeof(*columns); k++)
        columns_column(g, columns[k]);
}

static void add_row(struct columns *g, const struct watch_snapshot_image *i,
                    const struct watch_snapshot_row *row, bool listed_before, const struct watch_view *v)
{
    const struct rollup_row *of = watch_snapshot_rollup_row(i, row);
    const struct estimate *old = &of->self.of[ROLLUP_LIVE].bytes;
    char age[UNITS_TEXT_BYTES];
    struct buf cell = BUF_INIT;
    columns_row(g);
    text_add_value(&cell, old, TEXT_BYTES);
    columns_cell(g, &cell);
    text_add_interval(&cell, &v->style, old, TEXT_BYTES);
    columns_cell(g, &cell);
    text_add_number(&cell, of->self.aged_samples, NULL);
    columns_cell(g, &cell);
    if (row->fresh_samples)
        text_add_number(&cell, row->fresh_samples, NULL);
    columns_cell(g, &cell);
    buf_addstr(&cell, units_format_duration(age, (double)of->self.oldest_ns));
    columns_cell(g, &cell);
    add_marks(&cell, i, row, &v->style);
    columns_cell(g, &cell);
    if (listed_before)
        report_add_asker(g, i->profile, of->index, FRAMES_AGAIN);
    else
        report_add_stack(g, i->profile, of->index, v->frames);
}

/* "... 10 more, together 40 %": rows that were left out, because there is no room or nothing new. */
static void write_rest(struct sink *out, const struct watch_snapshot_image *i, size_t left_out, double bytes,
                       const struct watch_view *v)
{
    struct buf b = BUF_INIT;
    buf_printf(&b, "%s %zu more", text_dots(&v->style), left_out);
    if (bytes > 0) {
        buf_addstr(&b, ", together ");
        text_add_share(&b, bytes, watch_snapshot_old(i)->value);
    }
    sink_printf(out, "%*s%s%s%s\n", INDENT, "", text_begin(&v->style, TEXT_FAINT), buf_str(&b),
                text_end(&v->style, TEXT_FAINT));
    buf_release(&b);
}

static void write_rows(struct sink *out, const struct watch_snapshot *l, const struct watch_snapshot_image *i,
                       const struct watch_view *v)
{
    struct columns g = {.style = &v->style, .indent = INDENT};
    size_t left_out = 0;
    double bytes = 0;
    add_columns(&g);
    vec_each (const struct watch_snapshot_row, row, &i->rows) {
        if (is_shown(l, i, row) && (!v->top || g.rows.len < v->top)) {
            add_row(&g, i, row,
                    l->kind == WATCH_SNAPSHOT_CHANGES && !i->began && !row->is_new && !row->turned, v);
            continue;
        }
        left_out++;
        bytes += watch_snapshot_rollup_row(i, row)->self.of[ROLLUP_LIVE].bytes.value;
    }
    if (g.rows.len)
        columns_write(&g, out);
    if (left_out)
        write_rest(out, i, left_out, bytes, v);
    columns_release(&g);
}

static void write_image(struct sink *out, const struct watch_snapshot *l,
                        const struct watch_snapshot_image *i, const struct watch_view *v)
{
    struct buf b = BUF_INIT;
    add_process(&b, i, &v->style);
    add_sums(&b, i->older_than_ns, i->half_its_age, &i->live, watch_snapshot_old(i), &v->style);
    add_dismissed(&b, i->dismissed);
    begin_line(out, l);
    sink_printf(out, "%s\n", buf_str(&b));
    buf_release(&b);
    write_rows(out, l, i, v);
}

/* ---- recent frees ---- */

/* Adds the function that is responsible; "-": not known. */
static void add_code(struct columns *g, const struct profile *p, const struct frames *frames,
                     const struct text_style *style)
{
    struct buf cell = BUF_INIT;
    char scratch[FRAME_NAME_BYTES];
    if (frames->len) {
        const struct frame *owner = frames_owner(p, frames);
        text_add_name(&cell, style, frame_function(p, owner, scratch));
        buf_addch(&cell, ' ');
        common_add_place(&cell, style, p, owner);
    } else {
        buf_addch(&cell, '-');
    }
    columns_cell(g, &cell);
}

static void add_free(struct columns *g, const struct profile *p, const struct profile_free *f,
                     const struct text_style *style)
{
    char text[UNITS_TEXT_BYTES];
    struct frames frames = {0};
    struct buf cell = BUF_INIT;
    columns_row(g);
    buf_addstr(&cell, units_format_duration(text, (double)address_info_freed_before_ns(p, f)));
    columns_cell(g, &cell);
    buf_addstr(&cell, units_format_duration(text, (double)address_info_lifetime_ns(f)));
    columns_cell(g, &cell);
    buf_addstr(&cell, units_format_size(text, (double)f->size_bytes));
    columns_cell(g, &cell);
    buf_addstr(&cell, f->reallocated ? "realloc" : "free");
    columns_cell(g, &cell);
    frames_of(&frames, p, p->cells.at[f->cell].stack);
    add_code(g, p, &frames, style);
    common_freer(&frames, p, f);
    add_code(g, p, &frames, style);
    vec_release(&frames);
}

static void write_frees(struct sink *out, const struct watch_snapshot *l,
                        const struct watch_snapshot_image *i, const struct watch_view *v)
{
    const struct profile *p = i->profile;
    size_t n = p->frees.len, shown = v->top && n > v->top ? v->top : n;
    struct columns g = {.style = &v->style, .indent = INDENT};
    struct buf b = BUF_INIT;
    static const struct columns_column columns[] = {
        {.header = "AGO"},
        {.header = "LIVED"},
        {.header = "SIZE"},
        {.header = "BY", .left = true, .drop_rank = 1},
        {.header = "ALLOCATED IN", .left = true},
        {.header = "FREED IN", .left = true, .elastic = true},
    };
    add_process(&b, i, &v->style);
    begin_line(out, l);
    sink_printf(out, "%s: %zu sampled objects freed lately%s\n", buf_str(&b), n,
                n ? ", the latest first" : "");
    if (n) {
        uint32_t *order = address_info_latest_frees(p);
        for (size_t k = 0; k < sizeof(columns) / sizeof(*columns); k++)
            columns_column(&g, columns[k]);
        for (size_t k = 0; k < shown; k++)
            add_free(&g, p, &p->frees.at[order[k]], &v->style);
        columns_write(&g, out);
        if (shown < n)
            write_rest(out, i, n - shown, 0, v);
        free(order);
    }
    columns_release(&g);
    buf_release(&b);
}

/* ---- the snapshot ---- */

static void write_alert(struct sink *out, const struct watch_snapshot *l,
                        const struct watch_snapshot_alert *alert, const struct watch_view *v)
{
    const struct watch_snapshot_image *i = &l->images.at[alert->image];
    char scratch[FRAME_NAME_BYTES];
    struct frames frames = {0};
    struct buf b = BUF_INIT;
    add_process(&b, i, &v->style);
    if (alert->row != PROFILE_NONE) {
        const struct watch_snapshot_row *row = &i->rows.at[alert->row];
        frames_of(&frames, i->profile, watch_snapshot_rollup_row(i, row)->index);
        buf_addstr(&b, ": ");
        text_add_name(&b, &v->style, frame_function(i->profile, frames_asker(i->profile, &frames), scratch));
        buf_addstr(&b, " grows by ");
        add_growth(&b, i, &row->growth, &v->style);
    } else {
        buf_addstr(&b, ": live ");
        text_add_figure(&b, &v->style, &i->live, TEXT_BYTES);
    }
    begin_line(out, l);
    sink_printf(out, "%sALERT %s%s: %s\n", text_begin(&v->style, TEXT_ALARM), alert->condition,
                text_end(&v->style, TEXT_ALARM), buf_str(&b));
    buf_release(&b);
    vec_release(&frames);
}

static void write_ended(struct sink *out, const struct watch_snapshot *l, const struct watch_view *v)
{
    vec_each (const struct watch_snapshot_ended, ended, &l->ended) {
        struct buf b = BUF_INIT;
        text_add_name(&b, &v->style, ended->comm);
        begin_line(out, l);
        add_pid(&b, ended->pid);
        sink_printf(out, "%s has ended, or runs another program\n", buf_str(&b));
        buf_release(&b);
    }
}

void watch_write(struct sink *out, const struct watch_snapshot *l, const struct watch_view *v)
{
    bool changes = l->kind == WATCH_SNAPSHOT_CHANGES, rest = false;
    write_ended(out, l, v);
    vec_each (const struct watch_snapshot_alert, alert, &l->alerts)
        write_alert(out, l, alert, v);
    vec_each (const struct watch_snapshot_image, i, &l->images) {
        if (l->kind == WATCH_SNAPSHOT_FREES)
            write_frees(out, l, i, v);
        else if (!changes || i->began || i->changed)
            write_image(out, l, i, v);
        else
            rest = true;
    }
    if (rest)
        write_quiet(out, l, v);
    if (!l->images.len) {
        begin_line(out, l);
        sink_printf(out, "no process with a ledger\n");
    }
}
