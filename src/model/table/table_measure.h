/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_TABLE_MEASURE_H
#define MODEL_TABLE_MEASURE_H

/*
 * One number of each row (the sum of some columns), summed up over all rows: how many, the total, the largest,
 * and a histogram. `allium sys NAME --hist` shows it instead of events.
 *
 * Runs in: the tool. Threads: one. Owns: nothing.
 */

#include "model/table/table.h"

struct table_measure {
    uint64_t rows, total, most; /* the last two in the unit of the columns */
    uint64_t slots[TABLE_SLOTS];
};

/** The columns of table_measure_table(), in this order. */
enum table_measure_column { MEASURE_ROWS, MEASURE_TOTAL, MEASURE_MOST, MEASURE_HISTOGRAM, MEASURE_COLUMNS };

/**
 * Adds all rows of a table. `columns` are the bits of the columns that are added up; a row that lacks one is
 * left out.
 */
void table_measure_add(struct table_measure *m, uint64_t columns, const struct table *t);
/** A table of one row with MEASURE_COLUMNS columns, which the caller frees. */
struct table *table_measure_table(const struct table_measure *m, const struct table_column *columns);

#endif
