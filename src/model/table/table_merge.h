/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_TABLE_MERGE_H
#define MODEL_TABLE_MERGE_H

/*
 * Merges rows of a table that have the same values in some columns.
 *
 * Runs in: the tool. Threads: one at a time. Owns: nothing.
 */

#include "model/table/table.h"

/**
 * Rows with equal values in all of `columns` (bits, of TABLE_TEXT, TABLE_LINES and TABLE_WHOLE) become one row, in the
 * place of the first; unknown values count as equal. Known whole and signed numbers are added, and histograms. Of other
 * texts, that of the row with the largest number in the column `weight`, a TABLE_WHOLE, stays, with " and others"
 * appended if they differ. A text that ends in " and others" already differs from none that begins the same. Stacks,
 * addresses, shares and rates are unknown in a row of several. struct table_column has the exceptions.
 */
void table_merge(struct table *t, uint64_t columns, uint32_t weight);

/** What a text ends in that stands for several. */
#define TABLE_MERGE_OTHERS " and others"
/** Returns the length of a text without that. */
size_t table_merge_name_len(const char *text);

#endif
