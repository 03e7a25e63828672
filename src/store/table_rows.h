/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef STORE_TABLE_ROWS_H
#define STORE_TABLE_ROWS_H

/*
 * Tables of a recording that hold rows of typed columns (model/table/table.h), one for each source of such rows:
 * "sys_kmem"; and those of exact accounts (account_tables.h): "account_place".
 *
 *     CREATE TABLE sys_kmem(
 *       taken_ns INTEGER, call_site TEXT, allocated_bytes INTEGER, ...
 *     )
 *
 * Names are those of the JSON keys, and taken_ns is when the rows were taken. Which columns there are, the table's text
 * says and nothing else; so a stranger's is held to that form, byte for byte.
 *
 * Runs in: the tool. Threads: one at a time.
 */

#include <stdbool.h>

#include "model/table/table.h"
#include "store/sql_statement.h"

/** Asks which there are: one name a row. */
#define ROWS_TABLES_QUERY                                                                                    \
    "SELECT name FROM sqlite_schema WHERE type = 'table' AND (name GLOB 'sys_*' OR name GLOB 'account_*') "  \
    "AND name NOT GLOB '*[^a-z_]*' "                                                                         \
    "ORDER BY name"

/** Is this the text of a table of rows? */
bool rows_is_ours(const char *name, const char *sql);

/** A table of rows that is being written. */
struct rows_writer {
    char *name;
    struct sql put;
};

/** Makes the table and prepares it. An SQLite result code. */
int rows_create(struct rows_writer *w, sqlite3 *db, const char *name, const struct table *like);
void rows_finalize(struct rows_writer *w);
/** Puts one row; it waits in the feed. */
void rows_put(struct rows_writer *w, const struct table *t, uint32_t row, uint64_t time_ns);

#endif
