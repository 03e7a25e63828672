/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/histogram.h"

#include <inttypes.h>
#include <math.h>

#include "view/table_view.h"

#define BAR_COLUMNS   40u
#define BOUND_COLUMNS 9u

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

void histogram_add_text(struct buf *below, const struct text_style *style, enum table_unit unit,
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
    for (uint32_t i = first; most && i <= last; i++) {
        buf_addstr(below, "    ");
        add_bound(below, unit, slot_from(i));
        buf_addstr(below, style->utf8 ? " –" : " -");
        add_bound(below, unit, slot_to(i));
        buf_printf(below, " %10" PRIu64 "%s", slots[i], slots[i] ? "  " : "");
        /* What was there has a bar, however short beside the others. */
        for (double n = ceil((double)slots[i] * BAR_COLUMNS / (double)most); n > 0; n--)
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
