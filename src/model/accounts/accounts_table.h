/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_ACCOUNTS_TABLE_H
#define MODEL_ACCOUNTS_TABLE_H

/*
 * Rows of accounts, put in order and made a table of.
 *
 * Runs in: the tool. Threads: one at a time. Owns: nothing; the caller frees the table.
 */

#include "model/accounts/accounts.h"
#include "model/table/table.h"

/** What is asked for. */
enum account_view {
    ACCOUNT_NOW,    /* what is live, and what was ever made */
    ACCOUNT_CHANGE, /* what has changed between two moments */
    ACCOUNT_RATE,   /* the same, in a second */
};

/** What rows are sorted by: of a view that compares, its change. */
enum account_order {
    ACCOUNT_SORT_LIVE,
    ACCOUNT_SORT_OBJECTS,
    ACCOUNT_SORT_PEAK, /* of tags alone */
    ACCOUNT_SORT_ALLOCATED,
    ACCOUNT_SORT_ALLOCATIONS,
    ACCOUNT_SORT_FAILED,
    ACCOUNT_SORT_TOTAL, /* those below are of sites alone */
    ACCOUNT_SORT_SLACK,
    ACCOUNT_SORT_FREES,
    ACCOUNT_SORT_FREED_HERE,
};

struct account_shape {
    const char *schema; /* "tags": "allium-tags" in JSON */
    enum { ACCOUNT_OF_TAGS, ACCOUNT_OF_SITES, ACCOUNT_OF_SITES_FREED } kind; /* the last: by who frees */
    enum account_view view;
    enum account_group group;
    enum account_order sort;
    uint32_t top;   /* rows; 0: all */
    double seconds; /* between the two moments; 0: not known, as of different processes */
};

/** The first rows in that order. Columns without a meaning are hidden. */
struct table *accounts_table_new(const struct account_rows *r, const struct alloc_texts *texts,
                                 const struct account_shape *shape);
/** For screens: hides what says nothing where all is accurate, and what of a site stands in columns for people. */
void accounts_table_for_screen(struct table *t, const struct account_shape *shape);
/** Drops the rows that have nothing of what is asked for: of sites, those that only free, or never do. */
void accounts_table_choose(struct account_rows *r, const struct account_shape *shape);

#endif
