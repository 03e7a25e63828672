/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_ALLOC_TABLE_H
#define MODEL_ALLOC_TABLE_H

/*
 * Rows of places that allocate, put in order and made a table of: only of those that are shown, as there may be a
 * million.
 *
 * Runs in: the tool. Threads: one at a time. Owns: nothing; the caller frees the table.
 */

#include "model/accounts/alloc_sites.h"
#include "model/table/table.h"

/** What is asked for. */
enum alloc_view {
    ALLOC_NOW,    /* what is held */
    ALLOC_CHANGE, /* what has changed between two moments */
    ALLOC_RATE,   /* the same, in a second */
};

enum alloc_column {
    ALLOC_CHANGE_BYTES,
    ALLOC_RATE_BYTES,
    ALLOC_BEFORE_BYTES,
    ALLOC_SIZE,
    ALLOC_CHANGE_CALLS,
    ALLOC_RATE_CALLS,
    ALLOC_CALLS,
    ALLOC_AVERAGE,
    ALLOC_SITES,
    ALLOC_INEXACT,
    ALLOC_ACCURATE,
    ALLOC_FUNCTION,
    ALLOC_MODULE,
    ALLOC_DIRECTORY,
    ALLOC_FILE,
    ALLOC_LINE,
    ALLOC_COLUMNS,
};

struct alloc_shape {
    enum alloc_view view;
    enum alloc_group group;
    enum alloc_column sort; /* one that alloc_column_has() */
    enum table_order order;
    uint32_t top;         /* rows; 0: all */
    double seconds;       /* of rates */
    const char *built_in; /* stands for the module of what is in none; NULL: that is not known */
};

extern const struct table_column alloc_columns[ALLOC_COLUMNS];

/** Whether a column has a meaning in this view of such rows. */
bool alloc_column_has(enum alloc_view view, enum alloc_group group, enum alloc_column column);
/** What rows are sorted by unless told. */
enum alloc_column alloc_column_usual(enum alloc_view view);
/** The column that names rows: "name" for people. */
enum alloc_column alloc_column_name(enum alloc_group group);
/** The first rows in that order; "allium-allocinfo" in JSON. Columns without a meaning are hidden. */
struct table *alloc_table_new(const struct alloc_rows *r, const struct alloc_texts *texts,
                              const struct alloc_shape *shape);

#endif
