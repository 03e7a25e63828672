/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef STORE_SQL_STATEMENT_H
#define STORE_SQL_STATEMENT_H

/*
 * A prepared statement whose values are set or read from left to right. So the two functions that store and
 * load a row (profile_rows.c) state the order of the columns once.
 *
 * Runs in: the tool. Threads: one at a time. Owns: the statement and its feed, until sql_finalize().
 * Invariant: a value that does not fit (wrong type, out of range) sets `bad`, and a harmless value is
 * returned.
 */

#include "base/error.h"
#include "store/insert_vtab.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

/* Larger estimates are cut to this: sums of a million of them are still finite and exact enough. */
#define SQL_REAL_MAX 0x1p62

struct sql {
    sqlite3_stmt *stmt; /* NULL: not prepared */
    int column;         /* the next column to put or get */
    sqlite3_value **
        values; /* the columns, where a row is handed to a function (recording_reader.h); NULL: of the statement */
    /* where rows wait for sql_run(); NULL: values are parameters, and one run is one row */
    struct insert_vtab *feed;
    int rc; /* of the last step that returned neither a row nor the end; SQLITE_OK: none */
    bool bad;
};

int sql_prepare(struct sql *s, sqlite3 *db, const char *text); /* an SQLite result code */
void sql_finalize(struct sql *s);
/** Runs statements that return nothing. Returns an SQLite result code. */
int sql_execute(sqlite3 *db, const char *text);
/** Reads the first column of the first row as a number. Returns an SQLite result code. */
int sql_select_number(sqlite3 *db, const char *text, int64_t *answer);
/** Writes one line for a result code on the file `shown`. Returns the matching -errno. */
int sql_error(struct error *e, sqlite3 *db, int rc, const char *shown);
/** Returns a path for messages, with control characters replaced by '?' so that it is one line. Heap. */
char *sql_shown(const char *path);

/* Each sets the next value, from the first parameter or column on; sql_run() or sql_row() begins again. */
void sql_put_int(struct sql *s, int64_t value);
void sql_put_bits(struct sql *s, uint64_t value);  /* all 64 bits, as a signed number */
void sql_put_count(struct sql *s, uint64_t value); /* a value above INT64_MAX becomes INT64_MAX */
/* negative values and NaN become 0; at most SQL_REAL_MAX */
void sql_put_real(struct sql *s, double value);
void sql_put_ref(struct sql *s, uint32_t value);               /* UINT32_MAX becomes NULL */
void sql_put_text(struct sql *s, const char *text, int bytes); /* copied */
/** Runs the statement to its end and prepares it for the next parameters. Returns an SQLite result code. */
int sql_run(struct sql *s);

/**
 * Steps to the next row. False: no more rows, or an error in `rc` or `bad`; the statement is rewound then.
 */
bool sql_row(struct sql *s);

/* Each reads the next column, from the first one on. */
bool sql_is_null(const struct sql *s); /* of the next column */
int64_t sql_get_int(struct sql *s, int64_t low, int64_t high);
uint64_t sql_get_bits(struct sql *s);
uint64_t sql_get_count(struct sql *s);
uint64_t sql_get_count_or_none(struct sql *s); /* NULL: UINT64_MAX */
double sql_get_real(struct sql *s);
uint32_t sql_get_index(struct sql *s, uint64_t limit);         /* below limit */
uint32_t sql_get_index_or_none(struct sql *s, uint64_t limit); /* NULL: UINT32_MAX */
const char *sql_get_text(struct sql *s); /* of a statement's row, valid until the next step; never NULL */

#endif
