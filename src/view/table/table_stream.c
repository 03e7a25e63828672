/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/table/table_stream.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "view/table/table_view.h"

#define HEADERS_EVERY 40u
#define GAP           2u
#define DROP_NONE     100u
#define TEXT_LEAST    16u

/* The layout of rows that are not known yet. */
struct layout {
    bool exact;         /* see struct text_style */
    unsigned drop_rank; /* columns with this drop_rank or a larger one are not shown */
    unsigned extra;     /* width of each text of unknown length beyond TEXT_LEAST */
    uint32_t last;      /* the last column that is shown */
};

static bool is_elastic(const struct table_column *c)
{
    return c->type == TABLE_TEXT && !c->width;
}

static unsigned width_of(const struct table_column *c, bool exact)
{
    static const unsigned rounded[] = {
        [TABLE_PLAIN] = 7,    [TABLE_COUNT] = 7,    [TABLE_BYTES] = 9,
        [TABLE_DURATION] = 8, [TABLE_INSTANT] = 12, [TABLE_PERCENT] = 7,
    };
    static const unsigned whole[] = {
        [TABLE_PLAIN] = 7,     [TABLE_COUNT] = 11,   [TABLE_BYTES] = 16,
        [TABLE_DURATION] = 17, [TABLE_INSTANT] = 12, [TABLE_PERCENT] = 7,
    };
    const unsigned *units = exact ? whole : rounded;
    static const unsigned types[] = {[TABLE_ADDRESS] = 18, [TABLE_FLAG] = 3};
    unsigned header = (unsigned)strlen(c->header ? c->header : c->name);
    unsigned width = c->type == TABLE_TEXT                        ? c->width ? c->width : TEXT_LEAST
                     : c->type <= TABLE_ADDRESS && types[c->type] ? types[c->type]
                                                                  : units[c->unit];
    return header > width ? header : width;
}

/* Returns whether the column is shown. All rows have the same columns, also if a column has no value in any of them. */
static bool is_shown(const struct table *t, uint32_t i, unsigned drop_rank)
{
    const struct table_column *c = &t->columns[i];
    return !table_stands_below(t, i) && !table_hides(t, i) && (!c->drop_rank || c->drop_rank < drop_rank);
}

static unsigned total_width(const struct table *t, unsigned drop_rank, bool exact)
{
    unsigned width = 0;
    for (uint32_t i = 0; i < t->n_columns; i++)
        if (is_shown(t, i, drop_rank))
            width += width_of(&t->columns[i], exact) + GAP;
    return width;
}

static struct layout lay_out(const struct table *t, const struct text_style *style)
{
    struct layout l = {.exact = style->exact, .drop_rank = DROP_NONE};
    unsigned elastic = 0, room = style->columns + GAP;
    while (l.drop_rank > 1 && style->columns && total_width(t, l.drop_rank, style->exact) > room)
        l.drop_rank--;
    for (uint32_t i = 0; i < t->n_columns; i++) {
        if (!is_shown(t, i, l.drop_rank))
            continue;
        l.last = i;
        elastic += is_elastic(&t->columns[i]);
    }
    unsigned used = total_width(t, l.drop_rank, style->exact);
    if (elastic && used < room)
        l.extra = (room - used) / elastic;
    return l;
}

static void put(struct sink *out, const struct table *t, const struct layout *l, uint32_t column,
                const char *text)
{
    const struct table_column *c = &t->columns[column];
    bool last = column == l->last;
    size_t room = width_of(c, l->exact) + (is_elastic(c) ? l->extra : 0), width = text_width(text);
    size_t pad = width < room ? room - width : 0;
    if (c->type != TABLE_TEXT)
        sink_repeat(out, ' ', pad);
    sink_text(out, text);
    if (c->type == TABLE_TEXT && !last)
        sink_repeat(out, ' ', pad);
    sink_text(out, last ? "\n" : "  ");
}

/* Names the columns that have no room, before the first headings. */
static void put_dropped(struct sink *out, const struct table *t, const struct layout *l,
                        const struct text_style *style)
{
    static const char begin[] = "no room for ";
    struct VEC(char *) names = {0};
    struct buf line = BUF_INIT;
    for (uint32_t i = 0; i < t->n_columns; i++)
        if (is_shown(t, i, DROP_NONE) && !is_shown(t, i, l->drop_rank))
            *vec_push(&names) = table_view_header(&t->columns[i]);
    if (names.len && !style->file) {
        text_add_names(&line, (const char *const *)names.at, names.len, style->columns - strlen(begin));
        sink_printf(out, "%s%s%s%s\n", text_begin(style, TEXT_FAINT), begin, buf_str(&line),
                    text_end(style, TEXT_FAINT));
    }
    vec_each (char *, name, &names)
        free(*name);
    vec_release(&names);
    buf_release(&line);
}

static void put_headers(struct sink *out, const struct table *t, const struct layout *l)
{
    for (uint32_t i = 0; i <= l->last; i++) {
        if (!is_shown(t, i, l->drop_rank))
            continue;
        char *header = table_view_header(&t->columns[i]);
        put(out, t, l, i, header);
        free(header);
    }
}

static void put_value(struct sink *out, const struct table *t, const struct layout *l, uint32_t row,
                      uint32_t column, const struct text_style *style)
{
    const struct table_column *c = &t->columns[column];
    struct buf all = BUF_INIT, text = BUF_INIT;
    if (c->unit == TABLE_INSTANT && table_at(t, row, column)->known)
        text_add_moment(&all, table_at(t, row, column)->whole);
    else
        table_view_add_value(&all, style, t, row, column);
    if (is_elastic(c) && style->columns)
        text_add_short(&text, style, buf_str(&all), width_of(c, l->exact) + l->extra);
    else
        buf_addstr(&text, buf_str(&all));
    put(out, t, l, column, buf_str(&text));
    buf_release(&text);
    buf_release(&all);
}

/* Writes the report text of a row, if it has one: its first line behind the time, the others below. */
static bool put_story(struct sink *out, const struct table *t, uint32_t row, const struct text_style *style)
{
    const struct table_value *report = NULL, *moment = NULL;
    struct buf b = BUF_INIT;
    for (uint32_t i = 0; i < t->n_columns; i++) {
        const struct table_value *v = table_at(t, row, i);
        if (t->columns[i].report_text && v->known && !table_hides(t, i))
            report = v;
        if (t->columns[i].unit == TABLE_INSTANT && v->known && !moment)
            moment = v;
    }
    if (!report)
        return false;
    if (moment)
        text_add_moment(&b, moment->whole);
    for (const char *line = report->text; *line;) {
        size_t len = strcspn(line, "\n");
        buf_addstr(&b, line > report->text ? "    " : moment ? "  " : "");
        char *one = strndup(line, len);
        text_add_name(&b, style, one ? one : "");
        buf_addch(&b, '\n');
        free(one);
        line += len + (line[len] == '\n');
    }
    sink_text(out, buf_str(&b));
    buf_release(&b);
    return true;
}

static void put_lines(struct sink *out, const struct table *t, uint32_t row, const struct text_style *style)
{
    struct buf below = BUF_INIT;
    table_view_add_lines(&below, style, t, row);
    sink_text(out, buf_str(&below));
    buf_release(&below);
}

void table_stream_write(struct table_stream *v, struct sink *out, const struct table *t,
                        const struct text_style *style)
{
    struct layout l = lay_out(t, style);
    for (uint32_t row = 0; row < table_rows(t); row++) {
        if (put_story(out, t, row, style)) {
            put_lines(out, t, row, style);
            continue;
        }
        if (!v->named)
            put_dropped(out, t, &l, style);
        v->named = true;
        if (!v->rows || (v->repeat && v->rows % HEADERS_EVERY == 0))
            put_headers(out, t, &l);
        v->rows++;
        for (uint32_t i = 0; i <= l.last; i++)
            if (is_shown(t, i, l.drop_rank))
                put_value(out, t, &l, row, i, style);
        put_lines(out, t, row, style);
    }
}
