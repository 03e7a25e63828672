/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_TABLE_MERGE_H
#define MODEL_TABLE_MERGE_H

/*
 * Puts rows of a table together that have the same text in one column.
 *
 * Runs in: the tool. Threads: one at a time. Owns: nothing.
 */

#include "model/table/table.h"

/**
 * Rows of equal text in `column`, a TABLE_TEXT, become one, in the place of the first; those without one are alike,
 * too. Whole and signed numbers are added, of those that are known, and histograms. Of other texts the first one that
 * is known stays, with " and others" where they differ; a text that ends so already counts as one that differs from
 * none but in that.
 */
void table_merge(struct table *t, uint32_t column);

#endif
