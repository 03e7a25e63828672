/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_ACCOUNTS_VIEW_H
#define VIEW_ACCOUNTS_VIEW_H

/*
 * Exact accounts of tags, of sites and of the kernel, on the screen, as JSON, in the format of the kernel's
 * allocinfo or as OpenMetrics.
 *
 * Runs in: the tool. Owns: nothing.
 */

#include "model/accounts/accounts_growth.h"
#include "model/accounts/accounts_table.h"
#include "view/text/text.h"

enum accounts_format { ACCOUNTS_SCREEN, ACCOUNTS_JSON, ACCOUNTS_ALLOCINFO, ACCOUNTS_OPENMETRICS };

/** One reading of one source. */
struct accounts_reading {
    struct accounts accounts;
    char *label; /* name of the source, for people; NULL: the name of the process */
};

struct accounts_view {
    struct account_shape shape;
    const char *group;         /* name of the group, for JSON */
    const char *order;         /* name of the order, for JSON */
    const struct query *query; /* NULL: everything */
    enum accounts_format format;
    struct text_style style;
    /* for the kernel: time of the reading, since 1970; 0: unknown, as for a copy */
    uint64_t time_ns;
    struct account_growth *growth; /* --fail-if: measured when the change is written; NULL: none */
    size_t n_growth;
    bool line;                     /* one of several reports: JSON in one line */
    uint64_t began_ns, elapsed_ns; /* of rates: since the first reading, and since the last one */
};

/**
 * Writes the report, and appends its notes (view/text/notes.h). `before` is NULL if one reading is shown
 * without a comparison. Returns false if no place matches the query.
 */
bool accounts_view_write(struct sink *out, const struct accounts_view *o, struct alloc_texts *texts,
                         const struct accounts_reading *before, const struct accounts_reading *after,
                         struct buf *notes);
/** Returns the table that accounts_view_write() writes, with all rows, which the caller frees. `o->format` does not
 * matter. */
struct table *accounts_view_table(const struct accounts_view *o, struct alloc_texts *texts,
                                  const struct accounts_reading *before,
                                  const struct accounts_reading *after);
/**
 * Appends a note for each kind of loss that is not 0. `words` has the words for each kind, in the form of
 * text_add_words().
 */
void accounts_view_note_losses(struct buf *notes, const struct accounts *a,
                               const char *const words[static ACCOUNT_LOSSES]);
/** Appends a note about the malformed lines of the text, if there are any. */
void accounts_view_note_bad_lines(struct buf *notes, const struct accounts_reading *r);

#endif
