/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_TABLE_STREAM_H
#define VIEW_TABLE_STREAM_H

/*
 * Rows of a table as they come: nobody knows how wide the next ones will be, so columns have the width of their kind.
 *
 * Runs in: the tool. Threads: pure, but for the time zone.
 */

#include "model/table/table.h"
#include "view/text/sink.h"
#include "view/text/text.h"

struct table_stream {
    uint32_t rows; /* since the last line of headers */
    bool repeat;   /* headers again now and then: a terminal */
};

/** Writes all rows of the table, after headers if it is time for them. */
void table_stream_write(struct table_stream *v, struct sink *out, const struct table *t,
                        const struct text_style *style);

#endif
