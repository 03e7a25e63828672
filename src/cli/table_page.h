/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_TABLE_PAGE_H
#define CLI_TABLE_PAGE_H

/* A table as one HTML page: --html of `sys NAME`, `sites` and `tags`. */

#include <stdint.h>
#include <stdio.h>

#include "model/table/table.h"

struct table_page {
    const char *title;
    const char *about; /* a sentence above the rows, for readers without JavaScript */
    const struct table *table;
    uint32_t weight; /* the column that the page shows first */
    bool as_it_is; /* the rows stay in their order in the text; else those with most of `weight` come first */
    const uint64_t *times_ns; /* as html_table_add() takes them */
    const char *notes;        /* lines below the rows: losses; "" */
};

/** Writes the page into the open file, whose contents it replaces, and closes it. Returns 0 or -errno. */
int table_page_write(FILE *file, const struct table_page *page);

#endif
