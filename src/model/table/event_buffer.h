/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_EVENT_BUFFER_H
#define MODEL_EVENT_BUFFER_H

/*
 * Stores events until the end of an interval or of the run, then sorts them; the first ones are shown.
 * The number of stored events is bounded. If only the first N are shown, further ones are dropped without a loss. If
 * all are shown and there is no room, the last ones in the order are dropped and counted.
 *
 * Runs in: the tool. Threads: one. Owns: its rows, until event_buffer_release().
 */

#include "model/table/table.h"

struct event_buffer {
    struct table *table; /* NULL: each event is shown when it occurs */
    uint32_t sort;       /* column */
    enum table_order order;
    uint32_t top;        /* number of rows that are shown; 0: all */
    uint32_t room;       /* highest number of stored rows */
    uint64_t come;       /* number of events since the last report */
    uint64_t not_stored; /* dropped events that would have been shown, of all reports */
};

#define EVENT_BUFFER_DEFAULT 16384u

/** Moves all rows of `t` into the buffer. */
void event_buffer_add(struct event_buffer *k, struct table *t);
/** Sorts the rows and keeps only those that the report shows. Call it once for each report. */
void event_buffer_sort(struct event_buffer *k);
/** Removes all rows, for the next report. */
void event_buffer_clear(struct event_buffer *k);
void event_buffer_release(struct event_buffer *k);

#endif
