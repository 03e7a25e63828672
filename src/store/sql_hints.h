/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef STORE_SQL_HINTS_H
#define STORE_SQL_HINTS_H

/*
 * What SQLite says of a question that is wrong is short ("incomplete input"). Here it gets what is missing for a
 * person: where, what is meant perhaps, what to do.
 *
 * Runs in: the tool. Owns: nothing.
 */

#include "base/buf.h"

#include <sqlite3.h>

/**
 * Appends a line for what SQLite said (of which no more than SQL_HINTS_SAID_BYTES are kept; what it does not know it
 * leaves as it is). `*at`: the place in `sql`, in bytes, or negative where SQLite knows none, and set where it is known
 * all the same.
 */
void sql_hints_add(struct buf *out, sqlite3 *db, const char *sql, const char *said, int *at);

#define SQL_HINTS_SAID_BYTES 200

#endif
