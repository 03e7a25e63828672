/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_SQL_RESULT_H
#define MODEL_SQL_RESULT_H

/*
 * The rows of an SQL query. Their columns are not known in advance, and each value has a type of its own. For
 * lists with known columns there is struct table (table.h).
 *
 * Runs in: the tool. Threads: one at a time. Owns: names and texts, until sql_result_release().
 */

#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

enum sql_result_type {
    SQL_RESULT_NULL,
    SQL_RESULT_WHOLE,
    SQL_RESULT_REAL, /* may be infinite */
    SQL_RESULT_TEXT, /* any bytes, up to the first NUL */
    SQL_RESULT_BYTES,
};

struct sql_result_value {
    enum sql_result_type type;
    int64_t whole;
    double real;
    char *text;   /* TEXT, BYTES */
    size_t bytes; /* number of BYTES */
};

struct sql_result {
    struct VEC(char *) columns;                 /* unique names */
    struct VEC(struct sql_result_value) values; /* row by row */
};

/** Adds a column, before the first row. A name that exists already gets "_2", "_3" ... */
void sql_result_column(struct sql_result *a, const char *name);
/** Removes the rows, not the columns. */
void sql_result_clear(struct sql_result *a);
void sql_result_release(struct sql_result *a);
static inline size_t sql_result_rows(const struct sql_result *a)
{
    return a->columns.len ? a->values.len / a->columns.len : 0;
}
static inline const struct sql_result_value *sql_result_at(const struct sql_result *a, size_t row,
                                                           size_t column)
{
    return &a->values.at[row * a->columns.len + column];
}

#endif
