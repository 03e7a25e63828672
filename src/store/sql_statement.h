/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef STORE_SQL_STATEMENT_H
#define STORE_SQL_STATEMENT_H

/*
 * One prepared statement whose columns are given or taken from left to right, so that the pair of functions that puts
 * and gets a row (profile_rows.h) states the order of the columns once.
 *
 * Runs in: the tool. Threads: one at a time. Owns: the statement and its feed, until sql_finalize().
 * Invariant: a value that does not fit (another type, out of range) sets `bad`, and what is returned then is harmless.
 */

#include "base/error.h"
#include "store/insert_vtab.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#define SQL_REAL_MAX                                                                                         \
    0x1p62 /* estimates beyond it are cut: sums of a million of them are still finite and exact enough */

struct sql {
    sqlite3_stmt *stmt; /* NULL: not prepared */
    int column;         /* next to put or get */
    sqlite3_value **
        values; /* the columns, where a row is handed to a function (recording_reader.h); NULL: of the statement */
    struct insert_vtab
        *feed; /* where what is put waits for the run; NULL: values are parameters, one run is one row */
    int rc;    /* of the last step that was neither a row nor the end; SQLITE_OK: none */
    bool bad;
};

int sql_prepare(struct sql *s, sqlite3 *db, const char *text); /* an SQLite result code */
void sql_finalize(struct sql *s);
/** Runs statements that return nothing. An SQLite result code. */
int sql_execute(sqlite3 *db, const char *text);
/** The first column of the first row as a number. An SQLite result code. */
int sql_ask(sqlite3 *db, const char *text, int64_t *answer);
/** One line for a result code, as seen on the file `shown`; returns the -errno that fits. */
int sql_error(struct error *e, sqlite3 *db, int rc, const char *shown);
/** Where a path goes into a message: control characters, which could make two lines of it, become '?'. Heap. */
char *sql_shown(const char *path);

/* Values, from the first parameter or column on; sql_run() or sql_row() consumes them. */
void sql_put_int(struct sql *s, int64_t value);
void sql_put_bits(struct sql *s, uint64_t value);  /* all 64 of them, as a signed number */
void sql_put_count(struct sql *s, uint64_t value); /* what exceeds INT64_MAX becomes that */
void sql_put_real(struct sql *s, double value);    /* negative and NaN become 0, SQL_REAL_MAX is the most */
void sql_put_ref(struct sql *s, uint32_t value);   /* UINT32_MAX becomes NULL */
void sql_put_text(struct sql *s, const char *text, int bytes); /* copied */
/** Runs it to its end and makes it ready for the next parameters. An SQLite result code. */
int sql_run(struct sql *s);

/** Steps to the next row. False: no more, or `rc` or `bad` says what went wrong; rewound then. */
bool sql_row(struct sql *s);

/* Columns, from the first one on. */
bool sql_is_null(const struct sql *s); /* the next one */
int64_t sql_get_int(struct sql *s, int64_t low, int64_t high);
uint64_t sql_get_bits(struct sql *s);
uint64_t sql_get_count(struct sql *s);
uint64_t sql_get_count_or_none(struct sql *s); /* NULL: UINT64_MAX */
double sql_get_real(struct sql *s);
uint32_t sql_get_index(struct sql *s, uint64_t limit);         /* below limit */
uint32_t sql_get_index_or_none(struct sql *s, uint64_t limit); /* NULL: UINT32_MAX */
const char *sql_get_text(struct sql *s); /* of a statement's row, until the next step; never NULL */

#endif
