/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_SYS_REPORT_H
#define CLI_SYS_REPORT_H

/*
 * The reports of `allium sys NAME`, of a running tool and of a recording: rows and events are recorded, kept or
 * measured, and written as text, JSON or stacks.
 *
 * Runs in: the tool. Threads: one. Owns: the table, and the events that it keeps, until sys_report_end().
 */

#include "cli/sys/sys_show.h"
#include "model/table/event_buffer.h"
#include "view/table/table_stream.h"
#include "view/table/table_view.h"

struct sys_report {
    struct sys_show *o;
    const struct sys_tool *tool;
    struct table *table; /* what has come, for sys_report_write() */
    struct sink out;
    struct text_style style;
    struct table_stream stream;
    struct table_measure measured;
    struct event_buffer kept;
    struct buf heading;    /* of the next report; empty: it has none */
    uint64_t committed_ns; /* when the recording was */
    uint64_t recorded;     /* rows */
    bool any;              /* a row or an event has come that --where lets pass */
    uint64_t shown, all;   /* of the last report: rows, and how many there were before it was cut */
    uint64_t report_ns;    /* of rows that come every interval: when, since 1970 */
    uint64_t taken_ns;     /* of recorded rows: when they were taken, since 1970; 0: now */
    bool unshown;          /* this report is recorded only */
    bool unwritable;       /* a write to stdout failed: what comes is recorded only */
    bool over;             /* no row can be written any more: to the recording, or without one to stdout */
    int code;              /* of that */
};

void sys_report_begin(struct sys_report *r, struct sys_show *o, const struct sys_tool *tool);
void sys_report_end(struct sys_report *r);
/** The terminal has another size. */
void sys_report_resize(struct sys_report *r);
/** Writes the first line of a stream of JSON. */
void sys_report_begin_json(struct sys_report *r);
/** What has come, which is taken from the table: rows of a report, or events, which are written at once, kept, or
 * measured. */
void sys_report_write(struct sys_report *r);
/** Writes what was kept of the events since the last report, or what was measured of them. */
void sys_report_events(struct sys_report *r);
/** After the last report: one without a heading has its counts here. */
void sys_report_say_cut(const struct sys_report *r);

#endif
