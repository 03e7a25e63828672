/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_TABLE_QUERY_H
#define MODEL_TABLE_QUERY_H

/*
 * A query (--where) on the rows of any table: its fields are the columns.
 *
 * Runs in: the tool. Threads: one at a time. Owns: the query, until table_query_release().
 */

#include "base/error.h"
#include "model/table/table.h"
#include "query/query.h"

struct table_query {
    struct query *query; /* NULL: everything */
};

/** Parses a query on these columns; `text` may be NULL. Returns 0, or -EINVAL with a line. */
int table_query_init(struct table_query *q, const char *text, const struct table_column *columns,
                     uint32_t n_columns, struct error *e);
void table_query_release(struct table_query *q);
/** Returns whether the row matches. */
bool table_query_fits(const struct table_query *q, const struct table *t, uint32_t row);
/** Removes the rows that do not match. */
void table_query_apply(const struct table_query *q, struct table *t);

#endif
