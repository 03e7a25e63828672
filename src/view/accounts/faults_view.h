/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_FAULTS_VIEW_H
#define VIEW_FAULTS_VIEW_H

/*
 * The page faults of one process, by the allocation that owns the object in the page: on the screen or as
 * JSON.
 */

#include "view/accounts/accounts_view.h"

/** The counts, and the form in which they are shown. */
struct faults_view {
    const struct accounts_view *form; /* as for the accounts; the JSON schema is "allium-tags-faults" */
    const struct account_process *process;
    const struct account_rows *rows;        /* those that are shown; each has faults */
    const struct account_sum *total;        /* of all accounts */
    const struct account_faults_rest *rest; /* faults of no account */
    double seconds;                         /* how long faults were counted */
    bool user_alone;                        /* faults in system calls were not seen */
    bool fits;                              /* some account fits the query */
};

/** Writes the report, and appends its notes (view/text/notes.h). */
void faults_view_write(struct sink *out, const struct faults_view *o, const struct alloc_texts *texts,
                       struct buf *notes);

#endif
