/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_TABLE_FOLDED_H
#define VIEW_TABLE_FOLDED_H

/*
 * The stacks of a table's rows as folded lines, root;...;leaf weight, which flame graphs are made of.
 *
 * Runs in: the tool. Threads: pure. Owns: nothing.
 */

#include "model/table/table.h"
#include "view/text/sink.h"

/** A line for each row that has frames and more than nothing in column `weight`. */
void table_folded_write(struct sink *out, const struct table *t, uint32_t weight);

#endif
