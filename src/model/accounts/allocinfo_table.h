/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_ALLOCINFO_TABLE_H
#define MODEL_ALLOCINFO_TABLE_H

/*
 * Accounts of the kernel (/proc/allocinfo) as a table: only the rows that are shown, as there may be a million.
 *
 * Runs in: the tool. Threads: one at a time. Owns: nothing; the caller frees the table.
 */

#include "model/accounts/accounts_table.h"

enum allocinfo_column {
    ALLOCINFO_CHANGE_BYTES,
    ALLOCINFO_RATE_BYTES,
    ALLOCINFO_BEFORE_BYTES,
    ALLOCINFO_SIZE,
    ALLOCINFO_CHANGE_CALLS,
    ALLOCINFO_RATE_CALLS,
    ALLOCINFO_CALLS,
    ALLOCINFO_AVERAGE,
    ALLOCINFO_SITES,
    ALLOCINFO_INEXACT,
    ALLOCINFO_ACCURATE,
    ALLOCINFO_FUNCTION,
    ALLOCINFO_MODULE,
    ALLOCINFO_DIRECTORY,
    ALLOCINFO_FILE,
    ALLOCINFO_LINE,
    ALLOCINFO_COLUMNS,
};

extern const struct table_column allocinfo_columns[ALLOCINFO_COLUMNS];

/** Returns whether the column applies to such rows in this view. */
bool allocinfo_column_has(enum account_view view, enum account_group group, enum allocinfo_column column);
/** The column that rows are sorted by without --sort. */
enum allocinfo_column allocinfo_column_usual(enum account_view view);
/** The column that names rows, "name" in --sort. */
enum allocinfo_column allocinfo_column_name(enum account_group group);
/** The kernel's counters are signed, and may be below 0 for a moment. */
int64_t allocinfo_bytes(const struct account_row *row, enum account_moment moment);
int64_t allocinfo_bytes_change(const struct account_row *row);
int64_t allocinfo_calls_change(const struct account_row *row);
/** Makes a table of the first rows in that order; "allium-allocinfo" in JSON. Columns that do not apply are
 * hidden. */
struct table *allocinfo_table_new(const struct account_rows *r, const struct alloc_texts *texts,
                                  const struct account_shape *shape);
/** For screens: hides the columns about inexact sites where all of `total` is accurate. */
void allocinfo_table_for_screen(struct table *t, const struct account_row *total);

#endif
