/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/table_stream.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "view/table_view.h"

#define HEADERS_EVERY 40u
#define GAP           2u
#define DROP_NONE     100u

static unsigned width_of(const struct table_column *c)
{
    static const unsigned units[] = {
        [TABLE_PLAIN] = 7,    [TABLE_COUNT] = 7,    [TABLE_BYTES] = 9,
        [TABLE_DURATION] = 8, [TABLE_INSTANT] = 12, [TABLE_PERCENT] = 7,
    };
    unsigned header = (unsigned)strlen(c->name);
    unsigned width = c->type == TABLE_TEXT ? 16 : c->type == TABLE_ADDRESS ? 18 : units[c->unit];
    return header > width ? header : width;
}

/* Columns that no row of these has would come and go: who wants them has wider screens, or JSON. */
static bool is_shown(const struct table *t, uint32_t i, unsigned drop)
{
    const struct table_column *c = &t->columns[i];
    return !table_stands_below(t, i) && !table_hides(t, i) && (!c->drop || c->drop < drop);
}

static unsigned total_width(const struct table *t, unsigned drop)
{
    unsigned width = 0;
    for (uint32_t i = 0; i < t->n_columns; i++)
        if (is_shown(t, i, drop))
            width += width_of(&t->columns[i]) + GAP;
    return width;
}

/* Columns that may be dropped at this number or beyond have no room. */
static unsigned drop_from(const struct table *t, const struct text_style *style)
{
    unsigned drop = DROP_NONE;
    while (drop > 1 && style->columns && total_width(t, drop) > style->columns + GAP)
        drop--;
    return drop;
}

/* "14:02:11.083": rows of a stream are seldom of another day. */
static void add_moment(struct buf *b, uint64_t realtime_ns)
{
    text_add_clock(b, realtime_ns);
    buf_printf(b, ".%03u", (unsigned)(realtime_ns / 1000000 % 1000));
}

static void put(struct sink *out, const struct table_column *c, const char *text, bool last)
{
    size_t width = text_width(text), room = width_of(c), pad = width < room ? room - width : 0;
    if (c->type != TABLE_TEXT)
        sink_repeat(out, ' ', pad);
    sink_text(out, text);
    if (c->type == TABLE_TEXT && !last)
        sink_repeat(out, ' ', pad);
    sink_text(out, last ? "\n" : "  ");
}

static uint32_t last_shown(const struct table *t, unsigned drop)
{
    uint32_t last = 0;
    for (uint32_t i = 0; i < t->n_columns; i++)
        if (is_shown(t, i, drop))
            last = i;
    return last;
}

static void put_headers(struct sink *out, const struct table *t, unsigned drop)
{
    uint32_t last = last_shown(t, drop);
    for (uint32_t i = 0; i <= last; i++) {
        if (!is_shown(t, i, drop))
            continue;
        struct buf b = BUF_INIT;
        for (const char *p = t->columns[i].name; *p; p++)
            buf_addch(&b, *p == '_' ? ' ' : (char)toupper((unsigned char)*p));
        put(out, &t->columns[i], buf_str(&b), i == last);
        buf_release(&b);
    }
}

/* The story of a row, if it has one: its first line after the moment, the others below it. */
static bool put_story(struct sink *out, const struct table *t, uint32_t row, const struct text_style *style)
{
    const struct table_value *story = NULL, *moment = NULL;
    struct buf b = BUF_INIT;
    for (uint32_t i = 0; i < t->n_columns; i++) {
        const struct table_value *v = table_at(t, row, i);
        if (t->columns[i].story && v->known)
            story = v;
        if (t->columns[i].unit == TABLE_INSTANT && v->known && !moment)
            moment = v;
    }
    if (!story)
        return false;
    if (moment)
        add_moment(&b, moment->whole);
    for (const char *line = story->text; *line;) {
        size_t len = strcspn(line, "\n");
        buf_addstr(&b, line > story->text ? "    " : moment ? "  " : "");
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
    unsigned drop = drop_from(t, style);
    uint32_t last = last_shown(t, drop);
    for (uint32_t row = 0; row < table_rows(t); row++) {
        if (put_story(out, t, row, style)) {
            put_lines(out, t, row, style);
            continue;
        }
        if (!v->rows || (v->repeat && v->rows % HEADERS_EVERY == 0))
            put_headers(out, t, drop);
        v->rows++;
        for (uint32_t i = 0; i <= last; i++) {
            if (!is_shown(t, i, drop))
                continue;
            struct buf b = BUF_INIT;
            if (t->columns[i].unit == TABLE_INSTANT && table_at(t, row, i)->known)
                add_moment(&b, table_at(t, row, i)->whole);
            else
                table_view_add_value(&b, style, t, row, i);
            put(out, &t->columns[i], buf_str(&b), i == last);
            buf_release(&b);
        }
        put_lines(out, t, row, style);
    }
}
