/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef STORE_TABLE_ROWS_H
#define STORE_TABLE_ROWS_H

/*
 * Tables of a recording that hold rows of typed columns (model/table/table.h): one table for each source of
 * rows, such as "sys_kmem", those of exact accounts (account_tables.h), such as "account_place", and
 * "trace_stack" (stack_numbers.c).
 *
 *     CREATE TABLE sys_kmem(
 *       taken_ns INTEGER, call_site TEXT, allocated_bytes INTEGER, ...
 *     )
 *
 * The names are the JSON keys, and taken_ns is the time of the rows. An estimate has four columns: KEY, KEY_low,
 * KEY_high, and KEY_terms, a text of the numbers that the estimate is made of. Only the text of the table tells its
 * columns. So a text from a stranger must have exactly that form, byte for byte.
 */

#include <stdbool.h>

#include "model/table/table.h"
#include "store/sql_statement.h"

/** Selects the names of these tables, one a row. */
#define ROWS_TABLES_QUERY                                                                                    \
    "SELECT name FROM sqlite_schema WHERE type = 'table' AND (name GLOB 'sys_*' OR name GLOB 'account_*') "  \
    "AND name NOT GLOB '*[^a-z_]*' "                                                                         \
    "ORDER BY name"

/** Returns whether this is the text of a table of rows. */
bool rows_is_ours(const char *name, const char *sql);

/** A table of rows that is being written. */
struct rows_writer {
    char *name;
    struct sql put;
};

/** Creates the table and prepares it. Returns an SQLite result code. */
int rows_create(struct rows_writer *w, sqlite3 *db, const char *name, const struct table *like);
void rows_finalize(struct rows_writer *w);
/** Puts one row, which waits in the feed. */
void rows_put(struct rows_writer *w, const struct table *t, uint32_t row, uint64_t time_ns);

#endif
