/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_ALLOCINFO_VIEW_H
#define VIEW_ALLOCINFO_VIEW_H

/*
 * One reading of the kernel's allocinfo, or two of them compared: a screen, JSON, or the kernel's own text; and the
 * lines that were skipped.
 *
 * Runs in: the tool. Threads: one. Owns: nothing.
 */

#include <stdbool.h>
#include <stdint.h>

#include "model/accounts/alloc_table.h"
#include "view/text/text.h"

struct allocinfo_reading {
    struct alloc_listing info;
    const char *source; /* for people */
};

struct allocinfo_view {
    struct alloc_shape shape;
    const char *group;         /* its word */
    const struct query *query; /* NULL: everything */
    struct text_style style;
    bool json, kernel_text;
    bool line;                     /* JSON in one line: there will be more */
    uint64_t began_ns, elapsed_ns; /* of rates: since the first reading, and since the last one */
    uint64_t time_ns;              /* since 1970; 0: it is not known when the kernel wrote it */
};

/**
 * Writes the report; its notes (view/text/notes.h) are appended. `before` is NULL where one reading is shown and none
 * compared.
 */
void allocinfo_view_write(struct sink *out, const struct allocinfo_view *o, struct alloc_texts *texts,
                          const struct allocinfo_reading *before, const struct allocinfo_reading *after,
                          struct buf *notes);
/** Appends a note about the lines that were skipped, if any were. */
void allocinfo_view_note_losses(struct buf *notes, const struct allocinfo_reading *r);

#endif
