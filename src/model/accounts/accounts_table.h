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
enum account_order_by {
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
    enum {
        ACCOUNT_OF_TAGS,
        ACCOUNT_OF_SITES,
        ACCOUNT_OF_SITES_FREED, /* rows are the sites that free */
        ACCOUNT_OF_KERNEL,      /* /proc/allocinfo, see allocinfo_table.h */
    } kind;
    enum account_view view;
    enum account_group group;
    enum account_order_by sort; /* not of the kernel */
    uint32_t column;            /* of the kernel, instead: an enum allocinfo_column, */
    enum table_order order;     /* in that order, */
    const char *built_in;       /* and the module's name of code that is in no module; NULL: unknown */
    uint32_t top;               /* rows; 0: all */
    double seconds;             /* between the two moments; 0: not known, as of different processes */
};

/**
 * What a row is ordered by: a number (NAN: unknown) or a text (NULL: unknown); among equal rows, the larger
 * `then` comes first.
 */
struct account_order_key {
    double number;
    const char *text;
    double then;
};
struct account_order {
    struct account_order_key (*key)(const struct account_row *row, void *arg);
    void *arg;
    bool texts, least_first;
    uint32_t top; /* rows; 0: all */
};
struct account_ordered VEC(uint32_t);

/** Appends the numbers of the first rows in that order. Unknown values come last; equal rows stay in order. */
void account_rows_order(struct account_ordered *to, const struct account_rows *r,
                        const struct account_order *o);

/** The first rows in that order. Columns without a meaning are hidden. */
struct table *accounts_table_new(const struct account_rows *r, const struct alloc_texts *texts,
                                 const struct account_shape *shape);
/** For screens: hides what says nothing where all is accurate, and what of a site stands in columns for people. */
void accounts_table_for_screen(struct table *t, const struct account_shape *shape);
/** Drops the rows that have nothing of what is asked for: of sites, those that only free, or never do. */
void accounts_table_choose(struct account_rows *r, const struct account_shape *shape);

#endif
