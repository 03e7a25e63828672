/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_WATCH_VIEW_H
#define VIEW_WATCH_VIEW_H

/* A snapshot of `allium watch` as text or as one line of JSON. */

#include "model/profile/watch_snapshot.h"
#include "view/text/sink.h"
#include "view/text/text.h"

struct watch_view {
    struct text_style style;
    uint32_t top;    /* rows for each process; 0: all */
    uint32_t frames; /* of a stack; 0: all */
};

/** Writes what has changed, or all of it, according to the snapshot's kind; one line if nothing has changed.
 * WATCH_SNAPSHOT_FREES: frees. */
void watch_write(struct sink *out, const struct watch_snapshot *l, const struct watch_view *v);
/** Writes all of it, whatever its kind; see allium-json(5). */
void watch_json_write(struct sink *out, const struct watch_snapshot *l, uint32_t top);

#endif
