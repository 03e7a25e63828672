/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_HISTOGRAM_H
#define VIEW_HISTOGRAM_H

/*
 * How many values fell into each power of two, as lines with bars or as JSON.
 *
 * Runs in: the tool. Threads: pure. Owns: nothing.
 */

#include "model/table/table.h"
#include "view/formats/json.h"
#include "view/text/text.h"

/**
 * A line that says what of, after the column's name, and one for each slot from the first to the last that is not
 * empty: its bounds, its count, a bar.
 */
void histogram_add_text(struct buf *below, const struct text_style *style, const struct table_column *c,
                        const uint64_t slots[static TABLE_SLOTS]);
/** [{"from":1024,"to":2048,"count":3},...]: the slots that are not empty; `to` itself belongs to the next one. */
void histogram_write_json(struct json *j, const char *key, const uint64_t slots[static TABLE_SLOTS]);

#endif
