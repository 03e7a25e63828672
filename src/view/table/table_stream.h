/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_TABLE_STREAM_H
#define VIEW_TABLE_STREAM_H

/*
 * Rows of a table as they arrive. The width of later rows is not known, so each column has the usual width of
 * its type.
 */

#include "model/table/table.h"
#include "view/text/sink.h"
#include "view/text/text.h"

struct table_stream {
    uint32_t rows; /* since the last headings */
    bool repeat;   /* repeat the headings from time to time: for a terminal */
    bool named;    /* the columns that have no room were named */
};

/** Writes all rows of the table, after headings if they are due. */
void table_stream_write(struct table_stream *v, struct sink *out, const struct table *t,
                        const struct text_style *style);

#endif
