/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef STORE_INSERT_VTAB_H
#define STORE_INSERT_VTAB_H

/*
 * Rows that wait for one statement to put them into a table. SQLite reads them as a virtual table: a value is
 * copied once, from here into the record that is written; a value bound as a parameter is copied three times.
 */

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#define INSERT_VTAB_ROWS 256

struct insert_vtab;

/**
 * Registers, for this connection, a table "feed_NAME" of `width` columns that yields the waiting rows.
 * Release it with insert_vtab_release() after the statements that read it are finalized. Returns an SQLite
 * result code.
 */
int insert_vtab_create(struct insert_vtab **out, sqlite3 *db, const char *name, int width);
void insert_vtab_release(struct insert_vtab *f);

/* Each appends the next value, in the order of the columns, row by row. */
void insert_vtab_put_int(struct insert_vtab *f, int64_t value);
void insert_vtab_put_real(struct insert_vtab *f, double value);
void insert_vtab_put_null(struct insert_vtab *f);
void insert_vtab_put_text(struct insert_vtab *f, const char *text, int bytes); /* copied */

bool insert_vtab_is_empty(const struct insert_vtab *f);
/* INSERT_VTAB_ROWS rows wait: no more values may be added */
bool insert_vtab_is_full(const struct insert_vtab *f);
void insert_vtab_clear(struct insert_vtab *f);

#endif
