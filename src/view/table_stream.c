/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/table_stream.h"

#include <ctype.h>

#include "view/table_view.h"

#define HEADERS_EVERY 40u

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

static bool is_shown(const struct table *t, uint32_t i)
{
    return t->columns[i].type != TABLE_LINES && !table_hides(t, i);
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

static uint32_t last_shown(const struct table *t)
{
    uint32_t last = 0;
    for (uint32_t i = 0; i < t->n_columns; i++)
        if (is_shown(t, i))
            last = i;
    return last;
}

static void put_headers(struct sink *out, const struct table *t)
{
    uint32_t last = last_shown(t);
    for (uint32_t i = 0; i <= last; i++) {
        if (!is_shown(t, i))
            continue;
        struct buf b = BUF_INIT;
        for (const char *p = t->columns[i].name; *p; p++)
            buf_addch(&b, *p == '_' ? ' ' : (char)toupper((unsigned char)*p));
        put(out, &t->columns[i], buf_str(&b), i == last);
        buf_release(&b);
    }
}

void table_stream_write(struct table_stream *v, struct sink *out, const struct table *t,
                        const struct text_style *style)
{
    uint32_t last = last_shown(t);
    for (uint32_t row = 0; row < table_rows(t); row++) {
        if (!v->rows || (v->repeat && v->rows % HEADERS_EVERY == 0))
            put_headers(out, t);
        v->rows++;
        for (uint32_t i = 0; i <= last; i++) {
            if (!is_shown(t, i))
                continue;
            struct buf b = BUF_INIT;
            table_view_add_value(&b, style, t, row, i);
            put(out, &t->columns[i], buf_str(&b), i == last);
            buf_release(&b);
        }
        struct buf below = BUF_INIT;
        table_view_add_lines(&below, style, t, row);
        sink_text(out, buf_str(&below));
        buf_release(&below);
    }
}
