/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_PLACES_VIEW_H
#define VIEW_PLACES_VIEW_H

/* The tags in a program file: the places where it allocates, on the screen or as JSON. Nothing is counted. */

#include "model/accounts/accounts.h"
#include "view/text/text.h"

struct places_view {
    const char *source; /* for people */
    enum account_group group;
    const char *group_word;
    const struct query *query; /* NULL: everything */
    uint32_t top;              /* rows; 0: all */
    bool json;
    struct text_style style;
};

/**
 * Writes the tags of one file, by source file and line. Appends notes (view/text/notes.h) about missing
 * parts.
 */
void places_view_write(struct sink *out, const struct places_view *o, const struct accounts *a,
                       struct alloc_texts *texts, struct buf *notes);

#endif
