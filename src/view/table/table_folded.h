/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_TABLE_FOLDED_H
#define VIEW_TABLE_FOLDED_H

/* The stacks of a table's rows as folded lines, root;...;leaf weight, the input of flame graphs. */

#include "model/table/table.h"
#include "view/text/sink.h"

/** Writes a line for each row with frames and with more than 0 in column `weight`. */
void table_folded_write(struct sink *out, const struct table *t, uint32_t weight);

#endif
