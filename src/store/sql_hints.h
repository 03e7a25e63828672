/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef STORE_SQL_HINTS_H
#define STORE_SQL_HINTS_H

/*
 * Completes SQLite's error messages about a query, which are short ("incomplete input"): where the error is,
 * what may be meant, what to do.
 */

#include "base/buf.h"

#include <sqlite3.h>

/**
 * Appends a line for the message `said`, of which at most SQL_HINTS_SAID_BYTES are used. A message that is
 * not known stays as it is. `*at`: the position in `sql` in bytes, or negative if SQLite does not know it; it
 * is set if the function can find it.
 */
void sql_hints_add(struct buf *out, sqlite3 *db, const char *sql, const char *said, int *at);

#define SQL_HINTS_SAID_BYTES 200

#endif
