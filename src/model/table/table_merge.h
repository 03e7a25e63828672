/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_TABLE_MERGE_H
#define MODEL_TABLE_MERGE_H

/*
 * Merges rows of a table that have the same text in one column.
 *
 * Runs in: the tool. Threads: one at a time. Owns: nothing.
 */

#include "model/table/table.h"

/**
 * Rows with equal text in `column`, a TABLE_TEXT, become one row, in the place of the first; rows with an
 * unknown text count as equal. Known whole and signed numbers are added, and histograms. Of other texts the
 * first known one stays, with " and others" appended if they differ. A text that ends in " and others"
 * already differs from none that begins the same.
 */
void table_merge(struct table *t, uint32_t column);

#endif
