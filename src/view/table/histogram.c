/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/table/histogram.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "view/table/table_view.h"

#define BAR_COLUMNS   40u
#define BAR_LEAST     8u
#define BOUND_COLUMNS 9u
#define BEFORE_BAR    37u
#define NAME_ENDS     "_histogram" /* ending of the names of histogram columns */

static uint64_t slot_from(uint32_t slot)
{
    return slot ? 1ull << slot : 0;
}

static uint64_t slot_to(uint32_t slot)
{
    return slot + 1 < TABLE_SLOTS ? 1ull << (slot + 1) : UINT64_MAX;
}

static void add_bound(struct buf *below, enum table_unit unit, uint64_t value)
{
    struct buf b = BUF_INIT;
    table_view_add_quantity(&b, unit, (double)value);
    for (size_t n = text_width(buf_str(&b)); n < BOUND_COLUMNS; n++)
        buf_addch(below, ' ');
    buf_addstr(below, buf_str(&b));
    buf_release(&b);
}

/* "    REQUESTED                 COUNT" */
static void add_heading(struct buf *below, const struct table_column *c)
{
    struct buf b = BUF_INIT;
    const char *end = strstr(c->name, NAME_ENDS);
    for (const char *p = c->name; *p && p != end; p++)
        buf_addch(&b, *p == '_' ? ' ' : (char)toupper((unsigned char)*p));
    buf_printf(below, "    %-20s %10s\n", buf_str(&b), "COUNT");
    buf_release(&b);
}

/* Returns the width of the longest bar. */
static double bar_columns(const struct text_style *style)
{
    unsigned room = style->columns > BEFORE_BAR + BAR_LEAST ? style->columns - BEFORE_BAR : BAR_LEAST;
    return !style->columns || room > BAR_COLUMNS ? BAR_COLUMNS : room;
}

void histogram_add_text(struct buf *below, const struct text_style *style, const struct table_column *c,
                        const uint64_t slots[static TABLE_SLOTS])
{
    uint32_t first = TABLE_SLOTS, last = 0;
    uint64_t most = 0;
    for (uint32_t i = 0; i < TABLE_SLOTS; i++) {
        if (!slots[i])
            continue;
        first = i < first ? i : first;
        last = i;
        most = slots[i] > most ? slots[i] : most;
    }
    if (most)
        add_heading(below, c);
    for (uint32_t i = first; most && i <= last; i++) {
        buf_addstr(below, "    ");
        add_bound(below, c->unit, slot_from(i));
        buf_addstr(below, style->utf8 ? " –" : " -");
        add_bound(below, c->unit, slot_to(i));
        buf_printf(below, " %10" PRIu64 "%s", slots[i], slots[i] ? "  " : "");
        /* A slot that is not empty has a bar, even if it is very short. */
        for (double n = ceil((double)slots[i] * bar_columns(style) / (double)most); n > 0; n--)
            buf_addstr(below, style->utf8 ? "█" : "#");
        buf_addch(below, '\n');
    }
}

void histogram_write_json(struct json *j, const char *key, const uint64_t slots[static TABLE_SLOTS])
{
    json_open(j, key, '[');
    for (uint32_t i = 0; i < TABLE_SLOTS; i++) {
        if (!slots[i])
            continue;
        json_open(j, NULL, '{');
        json_whole(j, "from", slot_from(i));
        json_whole(j, "to", slot_to(i));
        json_whole(j, "count", slots[i]);
        json_close(j, '}');
    }
    json_close(j, ']');
}
