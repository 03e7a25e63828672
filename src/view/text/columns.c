/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/text/columns.h"

#include <string.h>

#include "view/text/column_choice.h"

#define GAP           2
#define ELASTIC_LEAST 28 /* other columns are dropped before the elastic one gets less */
#define WRAP_LEAST    40 /* a text that goes on in further lines stands below its row if it would get less */
#define WIDTH_LEAST   8

void columns_column(struct columns *g, struct columns_column column)
{
    *vec_push(&g->columns) = column;
}

void columns_row(struct columns *g)
{
    *vec_push(&g->rows) = (struct columns_row){.below = NULL};
}

void columns_cell(struct columns *g, struct buf *text)
{
    *vec_push(&g->cells) = buf_detach(text);
}

void columns_below(struct columns *g, struct buf *lines)
{
    free(g->rows.at[g->rows.len - 1].below);
    g->rows.at[g->rows.len - 1].below = buf_detach(lines);
}

void columns_release(struct columns *g)
{
    vec_each (char *, text, &g->cells)
        free(*text);
    vec_each (struct columns_row, row, &g->rows)
        free(row->below);
    vec_release(&g->columns);
    vec_release(&g->cells);
    vec_release(&g->rows);
}

static size_t natural_width(const struct columns *g, size_t column)
{
    size_t widest = text_width(g->columns.at[column].header);
    for (size_t i = column; i < g->cells.len; i += g->columns.len) {
        size_t width = text_width(g->cells.at[i]);
        widest = width > widest ? width : widest;
    }
    return widest;
}

/* Returns the column to drop first; past the last one if none may be dropped. */
static size_t least_wanted(const struct columns *g, const size_t *widths)
{
    size_t found = g->columns.len;
    for (size_t i = 0; i < g->columns.len; i++)
        if (widths[i] && g->columns.at[i].drop_rank &&
            (found == g->columns.len || g->columns.at[i].drop_rank > g->columns.at[found].drop_rank))
            found = i;
    return found;
}

/* Returns the widest name that can be shortened; past the last column if there is none. */
static size_t widest_name(const struct columns *g, const size_t *widths)
{
    size_t found = g->columns.len, most = ELASTIC_LEAST;
    for (size_t i = 0; i < g->columns.len; i++) {
        if (!g->columns.at[i].left || g->columns.at[i].wrap || widths[i] <= most)
            continue;
        found = i;
        most = widths[i];
    }
    return found;
}

static size_t width_used(const struct columns *g, const size_t *widths)
{
    size_t used = g->indent, shown = 0;
    for (size_t i = 0; i < g->columns.len; i++) {
        used += widths[i];
        shown += widths[i] != 0;
    }
    return used + (shown ? (shown - 1) * GAP : 0);
}

/* Returns the least width of a column: that of its header. */
static size_t least_width(const struct columns *g, size_t column)
{
    size_t header = text_width(g->columns.at[column].header);
    return header > WIDTH_LEAST ? header : WIDTH_LEAST;
}

/*
 * Shares the remaining width among the elastic columns. None gets more than it needs; those that need more get equal
 * widths.
 */
static void share_out(const struct columns *g, size_t *widths, const size_t *wanted)
{
    size_t used = width_used(g, widths), left = g->style->columns, sharing = 0;
    bool *shares = mem_array(g->columns.len, sizeof(*shares));
    for (size_t i = 0; i < g->columns.len; i++) {
        shares[i] = g->columns.at[i].elastic && widths[i]; /* it may have been dropped, too */
        sharing += shares[i];
        used -= shares[i] ? widths[i] : 0;
    }
    left = left > used ? left - used : 0;
    for (bool again = true; again;) {
        again = false;
        for (size_t i = 0; i < g->columns.len; i++) {
            if (!shares[i] || wanted[i] > left / sharing)
                continue;
            widths[i] = wanted[i];
            left -= wanted[i];
            sharing--;
            shares[i] = false;
            again = true;
        }
    }
    for (size_t i = 0; i < g->columns.len; i++)
        if (shares[i]) {
            size_t share = left / sharing, least = least_width(g, i);
            widths[i] = share > least ? share : least;
        }
    free(shares);
}

static void lay_out_narrow(const struct columns *g, size_t *widths)
{
    size_t room = g->style->columns, *wanted = mem_array(g->columns.len, sizeof(*wanted));
    for (size_t i = 0; i < g->columns.len; i++) {
        wanted[i] = widths[i];
        const size_t least = g->columns.at[i].wrap ? WRAP_LEAST : ELASTIC_LEAST;
        if (g->columns.at[i].elastic && widths[i] > least)
            widths[i] = least;
    }
    for (size_t i = g->columns.len; i--;)
        if (g->columns.at[i].elastic && g->columns.at[i].wrap && widths[i] && width_used(g, widths) > room)
            widths[i] = 0; /* one word a line is hard to read: see write_wrapped_below() */
    for (size_t i; width_used(g, widths) > room && (i = least_wanted(g, widths)) < g->columns.len;)
        widths[i] = 0;
    for (size_t i; width_used(g, widths) > room && (i = widest_name(g, widths)) < g->columns.len;)
        widths[i]--;
    share_out(g, widths, wanted);
    free(wanted);
}

/* Returns whether the column is shown. If none of a table is named, all are. */
static bool is_chosen(const struct columns *g, size_t column)
{
    const struct column_choice *only = g->style->only;
    bool any = false;
    if (!only || g->bare || column_choice_has(only, g->columns.at[column].header))
        return true;
    for (size_t i = 0; i < g->columns.len && !any; i++)
        any = column_choice_has(only, g->columns.at[i].header);
    return !any;
}

static void choose(const struct columns *g, size_t *widths)
{
    struct column_choice *only = g->style->only;
    if (!only || g->bare)
        return;
    only->any_table = true;
    for (size_t i = 0; i < g->columns.len; i++) {
        column_choice_note(only, g->columns.at[i].header);
        widths[i] = is_chosen(g, i) ? widths[i] : 0;
    }
}

void columns_empty(const struct columns *g, const char *header)
{
    if (g->style->only)
        column_choice_note(g->style->only, header);
}

static size_t *lay_out(const struct columns *g)
{
    size_t *widths = mem_array(g->columns.len, sizeof(*widths));
    for (size_t i = 0; i < g->columns.len; i++)
        widths[i] = natural_width(g, i);
    choose(g, widths);
    if (g->style->columns && width_used(g, widths) > g->style->columns)
        lay_out_narrow(g, widths);
    return widths;
}

/* Returns the number of bytes that fit into the width, up to a blank if there is one. */
static size_t line_bytes(const char *text, size_t width)
{
    size_t columns = 0, blank = 0, i = 0;
    for (; text[i]; i++) {
        if ((text[i] & 0xc0) != 0x80 && ++columns > width)
            return blank ? blank : i;
        if (text[i] == ' ')
            blank = i;
    }
    return i;
}

struct cursor {
    const struct columns *columns;
    struct sink *out;
    size_t column; /* present column of the screen */
    size_t start;  /* column in which the next cell begins */
};

static void put(struct cursor *c, const struct columns_column *column, const char *text, size_t width)
{
    size_t own = text_width(text), pad = own < width && !column->left ? width - own : 0;
    enum text_look look = *text ? column->look : TEXT_PLAIN;
    if (own) {
        size_t from = c->start + pad;
        sink_repeat(c->out, ' ', from > c->column ? from - c->column : 0);
        sink_printf(c->out, "%s%s%s", text_begin(c->columns->style, look), text,
                    text_end(c->columns->style, look));
        c->column = from + own;
    }
    c->start += width + GAP;
}

/*
 * Writes one line of cells. `rest` has the remaining text of each column, and is advanced. Returns true if text
 * remains.
 */
static bool write_line(const struct columns *g, struct sink *out, const size_t *widths, const char **rest)
{
    struct cursor c = {.columns = g, .out = out, .start = g->indent};
    bool more = false;
    for (size_t i = 0; i < g->columns.len; i++) {
        const struct columns_column *column = &g->columns.at[i];
        struct buf text = BUF_INIT;
        if (!widths[i])
            continue;
        if (column->wrap) {
            size_t bytes = line_bytes(rest[i], widths[i]);
            buf_add(&text, rest[i], bytes);
            rest[i] += bytes;
            while (*rest[i] == ' ')
                rest[i]++;
        } else {
            text_add_short(&text, g->style, rest[i], widths[i]);
            rest[i] = "";
        }
        more |= *rest[i] != '\0';
        put(&c, column, buf_str(&text), widths[i]);
        buf_release(&text);
    }
    sink_char(out, '\n');
    return more;
}

/* Writes a wrapped text that got no column of its own below its row, from the second column on. */
static void write_wrapped_below(const struct columns *g, struct sink *out, const size_t *widths, size_t row)
{
    for (size_t i = 0; i < g->columns.len; i++) {
        const char *text = g->cells.at[row * g->columns.len + i];
        if (g->columns.at[i].wrap && !widths[i] && *text && is_chosen(g, i))
            text_paragraph(out, g->style, "", g->indent + (unsigned)widths[0] + GAP, text);
    }
}

static void write_header(const struct columns *g, struct sink *out, const size_t *widths)
{
    struct cursor c = {.columns = g, .out = out, .start = g->indent};
    for (size_t i = 0; i < g->columns.len; i++) {
        struct columns_column header = g->columns.at[i];
        header.look = TEXT_FAINT;
        if (widths[i])
            put(&c, &header, header.header, widths[i]);
    }
    sink_char(out, '\n');
}

/* Names, on a terminal, the columns that found no room: a pipe gets them all. */
static void write_dropped(const struct columns *g, struct sink *out, const size_t *widths)
{
    static const char begin[] = "no room for ";
    struct VEC(const char *) names = {0};
    struct buf line = BUF_INIT;
    for (size_t i = 0; i < g->columns.len; i++)
        if (!widths[i] && !g->columns.at[i].wrap && natural_width(g, i) && is_chosen(g, i))
            *vec_push(&names) = g->columns.at[i].header;
    if (names.len && !g->style->file) {
        size_t used = g->indent + strlen(begin), room = g->style->columns;
        text_add_names(&line, names.at, names.len, room > used ? room - used : 0);
        sink_repeat(out, ' ', g->indent);
        sink_printf(out, "%s%s%s%s\n", text_begin(g->style, TEXT_FAINT), begin, buf_str(&line),
                    text_end(g->style, TEXT_FAINT));
    }
    vec_release(&names);
    buf_release(&line);
}

void columns_write(const struct columns *g, struct sink *out)
{
    size_t *widths = lay_out(g), n = g->columns.len;
    const char **rest = mem_array(n, sizeof(*rest));
    if (!g->bare)
        write_header(g, out, widths);
    for (size_t row = 0; row < g->rows.len; row++) {
        for (size_t i = 0; i < n; i++)
            rest[i] = g->cells.at[row * n + i];
        while (write_line(g, out, widths, rest))
            ;
        write_wrapped_below(g, out, widths, row);
        if (g->rows.at[row].below)
            sink_text(out, g->rows.at[row].below);
    }
    write_dropped(g, out, widths);
    free(rest);
    free(widths);
}
