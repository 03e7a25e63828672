/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_TABLE_VIEW_H
#define VIEW_TABLE_VIEW_H

/*
 * A table as aligned columns in human units, or as JSON. See allium-json(5).
 *
 * Runs in: the tool. Threads: pure, but for the time zone. Owns: nothing.
 */

#include "model/table/table.h"
#include "view/formats/json.h"
#include "view/text/sink.h"
#include "view/text/text.h"

/** Returns the heading of a column, "LIVE BYTES"; the caller frees it. */
char *table_view_header(const struct table_column *c);
/** Appends a number in its unit: "12.3 MiB". */
void table_view_add_quantity(struct buf *b, enum table_unit unit, double value);
/** Appends one value; "-" if it is not known. */
void table_view_add_value(struct buf *b, const struct text_style *style, const struct table *t, uint32_t row,
                          uint32_t column);
/** Appends the lines below the row: texts of several lines, each indented. */
void table_view_add_lines(struct buf *below, const struct text_style *style, const struct table *t,
                          uint32_t row);
/**
 * Unknown values are "-". If there is no room, columns with a priority are dropped, then shrinkable columns
 * are shortened (or the last column of text if none is shrinkable), then long names. In a file, shrinkable
 * columns keep their texts.
 */
void table_view_text(struct sink *out, const struct table *t, const struct text_style *style);
/** Writes only the row's values, as an object of one line: for streams. */
void table_view_json_row(struct sink *out, const struct table *t, uint32_t row);
/**
 * Like the function above, with the time of the report that the row belongs to, in ns since 1970; 0: none.
 */
void table_view_json_row_at(struct sink *out, const struct table *t, uint32_t row, uint64_t time_ns);
/** Writes {"schema":"allium-NAME","version":N,"rows":[{...}]}. */
void table_view_json(struct sink *out, const struct table *t);
/** Writes only the rows, as an array in a JSON text that is being written. */
void table_view_json_rows(struct json *j, const char *key, const struct table *t);

#endif
