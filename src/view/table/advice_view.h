/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_ADVICE_VIEW_H
#define VIEW_ADVICE_VIEW_H

/*
 * Measures that would make the kernel need less memory (model/kernel/advice/advice.h), on the screen or as JSON; see
 * allium-json(5).
 *
 * Runs in: the tool. Owns: nothing.
 */

#include "model/kernel/advice/advice.h"
#include "view/text/sink.h"
#include "view/text/text.h"

struct advice_view {
    const char *source;    /* the recording; NULL: this machine */
    const char *release;   /* of the kernel; NULL: not known */
    uint64_t time_ns;      /* of what is judged, since 1970; 0: not known */
    uint64_t memory_bytes; /* of the machine; 0: not known */
    uint32_t top;          /* measures that are shown; 0: all */
    struct text_style style;
};

/** Write the measures; the screen's version appends notes (view/text/notes.h) on what is not shown. */
void advice_view_text(struct sink *out, const struct advice_view *v, const struct advice *a,
                      struct buf *notes);
void advice_view_json(struct sink *out, const struct advice_view *v, const struct advice *a);

#endif
