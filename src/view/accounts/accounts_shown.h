/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_ACCOUNTS_SHOWN_H
#define VIEW_ACCOUNTS_SHOWN_H

/*
 * Shared by the parts of accounts_view only: the rows of one report and the sums in its heading.
 *
 * Runs in: the tool. Threads: one.
 */

#include "view/accounts/accounts_view.h"

struct shown {
    const struct accounts_view *o;
    struct alloc_texts *texts;
    const struct accounts_reading *of[ACCOUNT_MOMENTS];
    struct account_row whole; /* sums of all rows */
    struct account_row total; /* sums of the rows that match the query */
    struct account_rows places, rows;
    bool fits; /* some place matches the query, or there is no query */
    struct buf *notes;
};

/** Appends "8 places hold 12.3 MiB in 45 objects", and similar texts for other kinds. */
void accounts_add_sum(struct buf *b, const struct account_shape *shape, const struct account_sum *sum);
/** Appends "+1.20 MiB and +3 objects live, ...", and similar texts for other kinds. */
void accounts_add_change(struct buf *b, const struct account_shape *shape, const struct account_row *total);
void accounts_json_write(const struct shown *s, struct sink *out, const struct table *t);

#endif
