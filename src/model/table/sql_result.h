/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_SQL_RESULT_H
#define MODEL_SQL_RESULT_H

/*
 * Rows that answer a question somebody made up: nobody knows their columns before, and each value has a type of its own.
 * What is known before is a table (table.h).
 *
 * Runs in: the tool. Threads: one at a time. Owns: names and texts, until answer_release().
 */

#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

enum answer_type {
    ANSWER_NULL,
    ANSWER_WHOLE,
    ANSWER_REAL, /* may be infinite */
    ANSWER_TEXT, /* whatever bytes, up to the first NUL */
    ANSWER_BYTES,
};

struct answer_value {
    enum answer_type type;
    int64_t whole;
    double real;
    char *text;   /* TEXT, BYTES */
    size_t bytes; /* BYTES: how many */
};

struct answer {
    struct VEC(char *) columns;             /* each name once */
    struct VEC(struct answer_value) values; /* row after row */
};

/** A further column, before the first row. A name that is taken gets "_2", "_3" ... */
void answer_column(struct answer *a, const char *name);
/** Forgets the rows, not the columns. */
void answer_clear(struct answer *a);
void answer_release(struct answer *a);
static inline size_t answer_rows(const struct answer *a)
{
    return a->columns.len ? a->values.len / a->columns.len : 0;
}
static inline const struct answer_value *answer_at(const struct answer *a, size_t row, size_t column)
{
    return &a->values.at[row * a->columns.len + column];
}

#endif
