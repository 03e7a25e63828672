/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_ACCOUNTS_TABLE_H
#define MODEL_ACCOUNTS_TABLE_H

/*
 * Sorts rows of accounts and makes a table of them.
 *
 * Runs in: the tool. Threads: one at a time. Owns: nothing; the caller frees the table.
 */

#include "model/accounts/accounts.h"
#include "model/table/table.h"

/** What the table shows. */
enum account_view {
    ACCOUNT_NOW,    /* live memory, and all that was ever allocated */
    ACCOUNT_CHANGE, /* the change between two moments */
    ACCOUNT_RATE,   /* the change in a second */
};

/** The order of the rows. A view that compares is sorted by the change. */
enum account_order_by {
    ACCOUNT_SORT_LIVE,
    ACCOUNT_SORT_OBJECTS,
    ACCOUNT_SORT_PEAK, /* tags only */
    ACCOUNT_SORT_ALLOCATED,
    ACCOUNT_SORT_ALLOCATIONS,
    ACCOUNT_SORT_FAILED,
    ACCOUNT_SORT_TOTAL, /* this and those below: sites only */
    ACCOUNT_SORT_SLACK,
    ACCOUNT_SORT_FREES,
    ACCOUNT_SORT_FREED_BY_SITE,
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
    enum account_order_by sort; /* not for the kernel */
    uint32_t column;            /* for the kernel, instead: an enum allocinfo_column, */
    enum table_order order;     /* in that order, */
    const char *built_in;       /* and the name for the module of code in no module; NULL: unknown */
    uint32_t top;               /* rows; 0: all */
    double seconds;             /* between the two moments; 0: not known, because no process is in both */
};

/**
 * The value that determines a row's place: a number (NAN: unknown) or a text (NULL: unknown). Of rows with
 * equal values, the one with the larger `then` comes first.
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

/** Sets the texts of four columns, from `first` on: class, name, function and place ("list.c:12"). */
void account_names_put(struct table *t, uint32_t first, const struct account_key *key,
                       const struct alloc_texts *texts);

/** Makes a table of the first rows in that order. Columns that do not apply are hidden. */
struct table *accounts_table_new(const struct account_rows *r, const struct alloc_texts *texts,
                                 const struct account_shape *shape);
/**
 * For screens: hides the column `accurate` if all rows are, and the columns of a site that the name repeats.
 */
void accounts_table_for_screen(struct table *t, const struct account_shape *shape);
/** Drops the rows without anything to show in the table: sites that only free, or sites that never free. */
void accounts_table_choose(struct account_rows *r, const struct account_shape *shape);

#endif
