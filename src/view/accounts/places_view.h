/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_PLACES_VIEW_H
#define VIEW_PLACES_VIEW_H

/* The tags in a program file: the places where it allocates, on the screen or as JSON. Nothing is counted. */

#include "view/accounts/accounts_view.h"

/**
 * Writes the tags of one file, by source file and line; `source` names it for people. Appends notes
 * (view/text/notes.h) about missing parts.
 */
void places_view_write(struct sink *out, const struct accounts_view *o, const char *source,
                       const struct accounts *a, struct alloc_texts *texts, struct buf *notes);

#endif
