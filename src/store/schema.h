/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef STORE_SCHEMA_H
#define STORE_SCHEMA_H

/*
 * The tables of a recording, version SCHEMA_VERSION; allium-recording(5) explains them to users. The text of
 * a table is the only place that names its columns; profile_rows.c stores and loads them in that order.
 *
 * Runs in: the tool. Owns: nothing.
 * Invariant: a file whose schema differs by one byte is not read. So no view, trigger, index or generated
 * column of a stranger is ever evaluated, and every scan in key order is a plain walk.
 */

#include "store/sql_statement.h"

#define SCHEMA_APPLICATION_ID 0x416c6c69 /* "Alli" */
#define SCHEMA_VERSION        1

/* Facts in `meta` that belong to the profile. */
#define SCHEMA_TAKEN        "taken_ns"
#define SCHEMA_DROPPED      "images_dropped"
#define SCHEMA_DROPPED_PEAK "images_dropped_peak_bytes"

#define SCHEMA_COLUMNS_BYTES 768

enum schema_table {
    SCHEMA_META,
    SCHEMA_STRING,
    SCHEMA_IMAGE,
    SCHEMA_THREAD,
    SCHEMA_MODULE,
    SCHEMA_MAPPING,
    SCHEMA_LOCATION,
    SCHEMA_LINE,
    SCHEMA_STACK,
    SCHEMA_CELL,
    SCHEMA_LIFETIME,
    SCHEMA_SAMPLE,
    SCHEMA_FREE,
    SCHEMA_POINT,
    SCHEMA_MOMENT_CELL,
    SCHEMA_UNOBSERVED,
    SCHEMA_TABLES
};

const char *schema_table_name(enum schema_table table);
/** Returns the columns of its primary key. */
const char *schema_table_key(enum schema_table table);
/** Creates the tables in an empty database. Returns an SQLite result code. */
int schema_create(sqlite3 *db);
/** Returns true when the database has exactly these tables. *rc: an SQLite result code. */
bool schema_matches(sqlite3 *db, int *rc);
/** Returns true when at least the table `meta`, which no version changes, is as here. */
bool schema_has_meta(sqlite3 *db);
/** Prepares an INSERT OR REPLACE of the rows that wait in the table's feed. Returns an SQLite result code. */
int schema_prepare_put(struct sql *s, sqlite3 *db, enum schema_table table);
/** Writes the names of the table's columns, in their order. Returns an SQLite result code. */
int schema_columns(sqlite3 *db, enum schema_table table, char names[static SCHEMA_COLUMNS_BYTES]);
/** Prepares a SELECT of columns ("*": all), narrowed by a clause or "", in the order of the primary key.
 * Returns an SQLite result code. */
int schema_prepare_scan(struct sql *s, sqlite3 *db, enum schema_table table, const char *columns,
                        const char *where);

/** Prepares a scan without columns, for its condition alone (recording_reader.h). `falls`: in descending
 * order. */
int schema_prepare_walk(struct sql *s, sqlite3 *db, enum schema_table table, const char *where, bool falls);

#endif
