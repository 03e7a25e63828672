/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_HISTOGRAM_H
#define VIEW_HISTOGRAM_H

/* The number of values in each power of two, as lines with bars or as JSON. */

#include "model/table/table.h"
#include "view/formats/json.h"
#include "view/text/text.h"

/**
 * Writes a heading from the column's name, and one line for each slot from the first to the last that is not
 * empty: its bounds, its count, a bar.
 */
void histogram_add_text(struct buf *below, const struct text_style *style, const struct table_column *c,
                        const uint64_t slots[static TABLE_SLOTS]);
/** Writes [{"from":1024,"to":2048,"count":3},...]: the slots that are not empty; `to` itself belongs to the
 * next slot. */
void histogram_write_json(struct json *j, const char *key, const uint64_t slots[static TABLE_SLOTS]);

#endif
