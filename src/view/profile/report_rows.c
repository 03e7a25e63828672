/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "model/profile/figure_bounds.h"
#include "view/profile/common.h"
#include "view/profile/report_parts.h"
#include "view/text/tree.h"

#define STACK_INDENT   4
#define INDENT_COLUMNS 2  /* indentation of each level of a tree */
#define INDENT_MAX     40 /* deeper levels are not indented further, so that names have room */

/* The value that a column shows. */
enum field {
    NO_FIELD,
    MAIN, /* the value of the sort order, its share of the total, its interval; exclusive or inclusive */
    SHARE,
    INTERVAL,
    OTHER, /* the other of exclusive and inclusive, for groups that have both */
    OTHER_SHARE,
    LIVE,
    OBJECTS, /* number of objects, if MAIN is bytes */
    ALLOCATED,
    OBJECTS_INTERVAL,
    TEMPORARY, /* temporary share of the allocated bytes */
    OLDEST,
    MEDIAN,
    REQUESTED,
    SLACK,
};

#define FIELDS 11

/* The columns for each sort order. The last ones are dropped first if there is no room. */
static const enum field fields[][FIELDS] = {
    [ROLLUP_SORT_LIVE] = {MAIN, SHARE, INTERVAL, OTHER, OTHER_SHARE, OBJECTS, ALLOCATED, TEMPORARY, OLDEST},
    [ROLLUP_SORT_PEAK] = {MAIN, SHARE, INTERVAL, OTHER, OTHER_SHARE, OBJECTS, LIVE, ALLOCATED},
    [ROLLUP_SORT_ALLOCATED] = {MAIN, SHARE, INTERVAL, OTHER, OTHER_SHARE, OBJECTS, SLACK, TEMPORARY, LIVE},
    [ROLLUP_SORT_ALLOCATIONS] = {MAIN, SHARE, INTERVAL, OTHER, OTHER_SHARE, ALLOCATED, TEMPORARY, LIVE},
    [ROLLUP_SORT_TEMPORARY] = {MAIN, SHARE, INTERVAL, OTHER, OTHER_SHARE, OBJECTS, OBJECTS_INTERVAL,
                               ALLOCATED, TEMPORARY, LIVE},
    [ROLLUP_SORT_AGE] = {OLDEST, MEDIAN, MAIN, SHARE, INTERVAL, OTHER, OTHER_SHARE, OBJECTS},
    [ROLLUP_SORT_REQUESTED] = {MAIN, SHARE, INTERVAL, OTHER, OTHER_SHARE, OBJECTS, SLACK, ALLOCATED, LIVE},
    [ROLLUP_SORT_SLACK] = {MAIN, SHARE, INTERVAL, OTHER, OTHER_SHARE, OBJECTS, REQUESTED, ALLOCATED, LIVE},
};

struct rows {
    const struct rollup *rollup;
    const struct report_options *o;
    enum rollup_metric metric; /* the metric of MAIN */
    bool count;                /* MAIN counts objects */
    bool two;                  /* self and inclusive differ */
};

static const char *header_of(const struct rows *s, enum field field)
{
    static const char *const metrics[] = {
        [ROLLUP_LIVE] = "LIVE",           [ROLLUP_PEAK] = "PEAK",           [ROLLUP_ALLOCATED] = "ALLOCATED",
        [ROLLUP_TEMPORARY] = "TEMPORARY", [ROLLUP_REQUESTED] = "REQUESTED", [ROLLUP_SLACK] = "SLACK"};
    bool inclusive = s->rollup->options.inclusive;
    switch (field) {
    case MAIN:
        return s->two ? (inclusive ? "TOTAL" : "SELF") : s->count ? "CALLS" : metrics[s->metric];
    case SHARE:
    case OTHER_SHARE:
        return "SHARE";
    case INTERVAL:
    case OBJECTS_INTERVAL:
        return "95 % INTERVAL";
    case OTHER:
        return inclusive ? "SELF" : "TOTAL";
    case LIVE:
        return "LIVE";
    case OBJECTS:
        return s->metric == ROLLUP_ALLOCATED || s->metric > ROLLUP_AGES ? "CALLS" : "OBJECTS";
    case ALLOCATED:
        return "ALLOCATED";
    case TEMPORARY:
        return "TEMP";
    case OLDEST:
        return "OLDEST";
    case MEDIAN:
        return "MEDIAN";
    case REQUESTED:
        return "REQUESTED";
    case SLACK:
        return "SLACK";
    case NO_FIELD:
        break;
    }
    return "";
}

static bool is_shown(const struct rows *s, enum field field)
{
    const struct rollup_values *total = &s->rollup->total;
    switch (field) {
    case OTHER:
    case OTHER_SHARE:
        return s->two;
    case INTERVAL:
        return s->metric < ROLLUP_METRICS && !rollup_exact(&total->of[s->metric].bytes);
    case OBJECTS_INTERVAL:
        return !rollup_exact(&total->of[s->metric].count);
    case REQUESTED:
        return rollup_known(total, ROLLUP_REQUESTED);
    case SLACK:
        return rollup_known(total, ROLLUP_SLACK);
    case ALLOCATED:
        return rollup_known(total, ROLLUP_ALLOCATED);
    case TEMPORARY:
        return rollup_known(total, ROLLUP_TEMPORARY);
    case OLDEST:
    case MEDIAN:
        return rollup_known(total, ROLLUP_AGES);
    default:
        return true;
    }
}

static void add_age(struct buf *b, const struct rollup_values *v, uint64_t ns)
{
    char text[UNITS_TEXT_BYTES];
    buf_addstr(b, v->aged_samples ? units_format_duration(text, (double)ns) : "-");
}

/* A row of which nothing was sampled has no figure of its own: what it may hold is bounded by the total. */
static void add_value(struct buf *b, const struct estimate *e, enum text_unit unit)
{
    if (e->samples || rollup_exact(e))
        text_add_value(b, e, unit);
    else
        buf_addch(b, '-');
}

static void add_share(struct buf *b, const struct estimate *part, const struct estimate *total)
{
    if (part->samples || rollup_exact(part))
        text_add_share(b, part->value, total->value);
    else
        buf_addch(b, '-');
}

static struct estimate main_estimate(const struct rows *s, const struct rollup_values *v)
{
    const struct rollup_value value = rollup_value_of(v, s->metric);
    return s->count ? value.count : value.bytes;
}

static void add_bytes(struct buf *b, const struct rollup_values *v, enum rollup_metric m)
{
    const struct rollup_value value = rollup_value_of(v, m);
    add_value(b, &value.bytes, TEXT_BYTES);
}

static void add_field(struct buf *b, const struct rows *s, const struct rollup_row *row, enum field field)
{
    bool inclusive = s->rollup->options.inclusive;
    const struct rollup_values *v = inclusive ? &row->inclusive : &row->self;
    const struct rollup_values *other = inclusive ? &row->self : &row->inclusive;
    const struct estimate value = main_estimate(s, v), total = main_estimate(s, &s->rollup->total),
                          of_other = main_estimate(s, other);
    const struct rollup_value both = rollup_value_of(v, s->metric);
    enum text_unit unit = s->count ? TEXT_COUNT : TEXT_BYTES;
    switch (field) {
    case MAIN:
        add_value(b, &value, unit);
        break;
    case SHARE:
        add_share(b, &value, &total);
        break;
    case INTERVAL:
        text_add_interval(b, &s->o->style, &value, unit);
        break;
    case OTHER:
        add_value(b, &of_other, unit);
        break;
    case OTHER_SHARE:
        add_share(b, &of_other, &total);
        break;
    case LIVE:
        add_bytes(b, v, ROLLUP_LIVE);
        break;
    case OBJECTS:
        add_value(b, &both.count, TEXT_COUNT);
        break;
    case OBJECTS_INTERVAL:
        text_add_interval(b, &s->o->style, &both.count, TEXT_COUNT);
        break;
    case ALLOCATED:
        add_bytes(b, v, ROLLUP_ALLOCATED);
        break;
    case TEMPORARY:
        text_add_share(b, v->of[ROLLUP_TEMPORARY].bytes.value, v->of[ROLLUP_ALLOCATED].bytes.value);
        break;
    case OLDEST:
        add_age(b, v, v->oldest_ns);
        break;
    case MEDIAN:
        add_age(b, v, v->median_ns);
        break;
    case REQUESTED:
        add_bytes(b, v, ROLLUP_REQUESTED);
        break;
    case SLACK:
        add_bytes(b, v, ROLLUP_SLACK);
        break;
    case NO_FIELD:
        break;
    }
}

/* Returns whether the figures of a column may be too high or too low. */
static bool is_bound(const struct rows *s, enum field field)
{
    static const enum rollup_metric metrics[] = {
        [LIVE] = ROLLUP_LIVE,   [ALLOCATED] = ROLLUP_ALLOCATED, [TEMPORARY] = ROLLUP_TEMPORARY,
        [OLDEST] = ROLLUP_AGES, [MEDIAN] = ROLLUP_AGES,         [REQUESTED] = ROLLUP_REQUESTED,
        [SLACK] = ROLLUP_SLACK};
    switch (field) {
    case NO_FIELD:
    case SHARE:
    case OTHER_SHARE:
    case INTERVAL:
    case OBJECTS_INTERVAL:
        return false;
    case MAIN:
    case OTHER:
    case OBJECTS:
        return figure_bounds_of(s->rollup->profile, s->metric);
    default:
        return figure_bounds_of(s->rollup->profile, metrics[field]);
    }
}

/* As add_field(), with the sign of figures that may be wrong. */
static void add_marked(struct buf *b, const struct rows *s, const struct rollup_row *row, enum field field)
{
    struct buf figure = BUF_INIT;
    add_field(&figure, s, row, field);
    common_mark(b, is_bound(s, field) && strcmp(buf_str(&figure), "-"));
    buf_addstr(b, buf_str(&figure));
    buf_release(&figure);
}

/* ---- stacks, beneath their line ---- */

static void add_stack(struct columns *rows, const struct profile *p, uint32_t stack, uint32_t most, bool all)
{
    struct frames frames = {0};
    struct buf lines = BUF_INIT;
    struct sink out = sink_to_buf(&lines);
    frames_of(&frames, p, stack);
    size_t first = all ? 0 : frames_passed_over(p, &frames);
    frames.len -= first;
    memmove(frames.at, frames.at + first, frames.len * sizeof(*frames.at));
    common_stack(&out, rows->style, p, &frames, most, rows->indent + STACK_INDENT);
    columns_below(rows, &lines);
    vec_release(&frames);
}

void report_add_stack(struct columns *rows, const struct profile *p, uint32_t stack, uint32_t most)
{
    add_stack(rows, p, stack, most, true);
}

void report_add_asker(struct columns *rows, const struct profile *p, uint32_t stack, uint32_t most)
{
    add_stack(rows, p, stack, most, false);
}

/* ---- the table ---- */

const char *const report_name_headers[] = {
    [ROLLUP_BY_STACK] = "",           [ROLLUP_BY_FUNCTION] = "FUNCTION",
    [ROLLUP_BY_FILE] = "FILE",        [ROLLUP_BY_DIRECTORY] = "DIRECTORY",
    [ROLLUP_BY_MODULE] = "MODULE",    [ROLLUP_BY_OWNER] = "FUNCTION",
    [ROLLUP_BY_THREAD] = "THREAD",    [ROLLUP_BY_SIZE] = "SIZE",
    [ROLLUP_BY_PROCESS] = "PROCESS",  [ROLLUP_BY_CALLERS] = "FUNCTION",
    [ROLLUP_BY_CALLEES] = "FUNCTION",
};

static bool has_module(enum rollup_group group)
{
    return group == ROLLUP_BY_FUNCTION || group == ROLLUP_BY_OWNER;
}

static void add_columns(struct columns *g, const struct rows *s)
{
    enum rollup_group group = s->rollup->options.group;
    const enum field *shown = fields[s->rollup->options.sort];
    for (unsigned i = 0; i < FIELDS && shown[i]; i++)
        if (is_shown(s, shown[i]))
            columns_column(g, (struct columns_column){.header = header_of(s, shown[i]),
                                                      .drop_rank = shown[i] == MAIN ? 0 : i + 1,
                                                      .look = shown[i] == MAIN ? TEXT_STRONG : TEXT_PLAIN});
    if (group != ROLLUP_BY_STACK)
        columns_column(
            g, (struct columns_column){.header = report_name_headers[group], .left = true, .elastic = true});
    if (has_module(group))
        columns_column(g, (struct columns_column){
                              .header = "MODULE", .left = true, .drop_rank = FIELDS + 1, .look = TEXT_FAINT});
}

/*
 * Appends "hsetCommand < call < main": a row of a tree and the rows that share its line, without the frames outside
 * main().
 */
static void add_way(struct buf *b, const struct rows *s, uint32_t row, const struct tree *t)
{
    const struct rollup *r = s->rollup;
    for (unsigned i = 0; i < INDENT_COLUMNS * t->indents[row] && i < INDENT_MAX; i++)
        buf_addch(b, ' ');
    text_add_name(b, &s->o->style, r->rows.at[row].name);
    while (strcmp(r->rows.at[row].name, "main") && ++row < r->rows.len && t->joins[row]) {
        buf_addstr(b, r->options.group == ROLLUP_BY_CALLERS ? " < " : " > ");
        text_add_name(b, &s->o->style, r->rows.at[row].name);
    }
}

static void add_row(struct columns *g, const struct rows *s, const struct rollup_row *row,
                    const struct tree *t)
{
    enum rollup_group group = s->rollup->options.group;
    const enum field *shown = fields[s->rollup->options.sort];
    struct buf cell = BUF_INIT;
    columns_row(g);
    for (unsigned i = 0; i < FIELDS && shown[i]; i++) {
        if (!is_shown(s, shown[i]))
            continue;
        add_marked(&cell, s, row, shown[i]);
        columns_cell(g, &cell);
    }
    if (group == ROLLUP_BY_STACK) {
        report_add_stack(g, s->rollup->profile, row->index, s->o->frames);
        return;
    }
    if (t)
        add_way(&cell, s, (uint32_t)(row - s->rollup->rows.at), t);
    else
        text_add_name(&cell, &s->o->style, row->name);
    columns_cell(g, &cell);
    if (has_module(group)) {
        text_add_name(&cell, &s->o->style, frame_basename(row->module));
        columns_cell(g, &cell);
    }
}

static void write_rest(struct sink *out, const struct rows *s, size_t shown, size_t all, unsigned indent)
{
    const struct rollup *r = s->rollup;
    const struct text_style *style = &s->o->style;
    struct buf b = BUF_INIT;
    double rest = 0;
    for (size_t i = shown; i < all; i++)
        rest += main_estimate(s, &r->rows.at[i].self).value;
    buf_printf(&b, "%s %zu more", text_dots(style), all - shown);
    if (!r->options.inclusive && rest > 0) {
        buf_addstr(&b, ", together ");
        text_add_share(&b, rest, main_estimate(s, &r->total).value);
    }
    sink_repeat(out, ' ', indent);
    sink_printf(out, "%s%s%s\n", text_begin(style, TEXT_FAINT), buf_str(&b), text_end(style, TEXT_FAINT));
    buf_release(&b);
}

/* Returns the number of shown lines; `all` becomes the number of all lines. */
static size_t add_tree(struct columns *g, const struct rows *s, size_t *all)
{
    struct tree t;
    tree_init(&t, s->rollup, 0, true);
    *all = t.n;
    tree_release(&t);
    tree_init(&t, s->rollup, s->o->top, true);
    size_t n = t.n;
    for (size_t i = 0; i < n; i++)
        add_row(g, s, &s->rollup->rows.at[t.shown[i]], &t);
    tree_release(&t);
    return n;
}

void report_rows(struct sink *out, const struct rollup *r, const struct report_options *o, unsigned indent)
{
    enum rollup_group group = r->options.group;
    struct rows s = {
        .rollup = r,
        .o = o,
        .metric = rollup_sort_metric(r->options.sort),
        .count = r->options.sort == ROLLUP_SORT_ALLOCATIONS,
        .two = group >= ROLLUP_BY_FUNCTION && group <= ROLLUP_BY_MODULE,
    };
    struct columns g = {.style = &o->style, .indent = indent};
    size_t all = 0, shown; /* rows with the value 0 come last */
    while (all < r->rows.len && rollup_sort_value(r->options.sort, &r->rows.at[all].inclusive) > 0)
        all++;
    add_columns(&g, &s);
    if (rollup_is_tree(group)) {
        shown = add_tree(&g, &s, &all);
    } else {
        shown = o->top && all > o->top ? o->top : all;
        for (size_t i = 0; i < shown; i++)
            add_row(&g, &s, &r->rows.at[i], NULL);
    }
    if (shown)
        columns_write(&g, out);
    else
        sink_printf(out, "%*s%s\n", (int)indent, "", "nothing");
    if (shown < all)
        write_rest(out, &s, shown, all, indent);
    columns_release(&g);
}
