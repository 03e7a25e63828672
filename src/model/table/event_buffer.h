/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_EVENT_BUFFER_H
#define MODEL_EVENT_BUFFER_H

/*
 * Events that are not shown as they come but kept, until the end of an interval or of all: then sorted, and the first
 * of them shown. What is kept is bounded. Where only the first N are asked for, others may go at any time without a
 * loss; else those that are last in order go when there is no room, and are counted.
 *
 * Runs in: the tool. Threads: one. Owns: its rows, until event_buffer_release().
 */

#include "model/table/table.h"

struct event_buffer {
    struct table *table; /* NULL: events are shown as they come */
    uint32_t sort;       /* column */
    enum table_order order;
    uint32_t top;        /* so many are shown; 0: all */
    uint32_t room;       /* and at most so many are kept */
    uint64_t come;       /* since the last report */
    uint64_t not_stored; /* of all reports: those that would have been shown if there had been room */
};

#define EVENT_BUFFER_DEFAULT 16384u

/** Takes over all rows of `t`, which is empty then. */
void event_buffer_add(struct event_buffer *k, struct table *t);
/** For a report: sorts what is kept and cuts it to what is shown. Once for each. */
void event_buffer_sort(struct event_buffer *k);
/** Begins anew, for the next report. */
void event_buffer_clear(struct event_buffer *k);
void event_buffer_release(struct event_buffer *k);

#endif
