/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_HTML_TABLE_H
#define VIEW_HTML_TABLE_H

/*
 * A table as the data of a page: numbers and texts in columns; columns with stacks as frames, so that the page can draw
 * a flame graph of them.
 *
 * Runs in: the tool. Threads: one at a time. Owns: nothing.
 */

#include "model/table/table.h"
#include "view/page/page_blob.h"

/**
 * Adds the columns that the table does not hide, but for histograms and those without any value. `weight`: the column
 * that the page shows first. `times_ns`: when each row was taken (CLOCK_REALTIME), if the table has rows of several
 * reports; NULL: it is one report.
 */
void html_table_add(struct page_blob *b, const struct table *t, uint32_t weight, const uint64_t *times_ns);

#endif
