/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_EVENT_BUFFER_H
#define CLI_EVENT_BUFFER_H

/*
 * Events that are not shown as they come but kept, until the end of an interval or of all: then sorted, and the first of
 * them shown. What is kept is bounded. Where only the first N are asked for, others may go at any time without a loss; else
 * those that are last in order go when there is no room, and are counted.
 *
 * Runs in: the tool. Threads: one. Owns: its rows, until sys_kept_release().
 */

#include "model/table/table.h"

struct sys_kept {
    struct table *table; /* NULL: events are shown as they come */
    uint32_t sort;       /* column */
    enum table_order order;
    uint32_t top;      /* so many are shown; 0: all */
    uint32_t room;     /* and at most so many are kept */
    uint64_t come;     /* since the last report */
    uint64_t not_kept; /* of all reports: those that would have been shown if there had been room */
};

#define SYS_KEPT_DEFAULT 16384u

/** Takes over all rows of `t`, which is empty then. */
void sys_kept_add(struct sys_kept *k, struct table *t);
/** For a report: sorts what is kept and cuts it to what is shown. Once for each. */
void sys_kept_settle(struct sys_kept *k);
/** Begins anew, for the next report. */
void sys_kept_clear(struct sys_kept *k);
void sys_kept_release(struct sys_kept *k);

#endif
