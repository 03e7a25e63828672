/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef STORE_INSERT_VTAB_H
#define STORE_INSERT_VTAB_H

/*
 * Rows that wait for one statement to put them into a table. SQLite reads them as a virtual table: a value passes from
 * here into the record that is written, while one that is bound as a parameter is copied three times on its way.
 *
 * Runs in: the tool. Threads: one at a time. Owns: the values and their texts, until they are cleared.
 */

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#define FEED_ROWS 256

struct feed;

/**
 * Registers, for this connection, a table "feed_NAME" of `width` columns that yields the rows that wait. Released with
 * feed_release(), not before the statements that read it are finalized. An SQLite result code.
 */
int feed_create(struct feed **out, sqlite3 *db, const char *name, int width);
void feed_release(struct feed *f);

/* The next value, in the order of the columns, row by row. */
void feed_put_int(struct feed *f, int64_t value);
void feed_put_real(struct feed *f, double value);
void feed_put_null(struct feed *f);
void feed_put_text(struct feed *f, const char *text, int bytes); /* copied */

bool feed_is_empty(const struct feed *f);
bool feed_is_full(const struct feed *f); /* FEED_ROWS rows wait: no value more */
void feed_clear(struct feed *f);

#endif
