/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_SYS_SHOW_H
#define CLI_SYS_SHOW_H

/*
 * The main loop of `allium sys NAME`: waits, shows events as they come and rows at each interval, and ends
 * with the losses.
 */

#include <stdbool.h>
#include <stdint.h>

#include "cli/sys/sys_alert.h"
#include "model/table/table_query.h"
#include "run/workload.h"
#include "store/recording.h"
#include "sys/session.h"

struct sys_page; /* cli/sys/sys_page.h */

/** A part of the time of a recording or a trace. */
struct sys_span {
    bool given;
    uint64_t from_ns, to_ns; /* since its beginning; UINT64_MAX: up to the end */
};

struct sys_show {
    struct sys_session *session;
    struct workload *command; /* NULL: none */
    const char *command_name;
    struct table_query where;
    struct sys_alert alert;
    const struct sys_part *regroup; /* of a recording: by what its rows are grouped anew; NULL: as they are */
    uint64_t hidden;                /* bits of columns that do not apply */
    uint64_t columns;               /* bits of those that --columns names; 0: all are shown */
    uint64_t interval_ns, duration_ns; /* 0: not given */
    uint32_t sort;                     /* column */
    enum table_order order;
    uint32_t top;           /* rows of a report; 0: all */
    bool keep;              /* store the events, for a report at the end of an interval or at the end */
    uint32_t room;          /* how many of them to store; 0: EVENT_BUFFER_DEFAULT */
    struct sys_span span;   /* of --time */
    const char *shown_name; /* of a recording, in messages; NULL: its path */
    bool json, folded, quiet;
    bool charge_allocator;       /* a free counts in the row that allocated; see sys_charge.h */
    bool slab_account;           /* ... and the rows are written as that table */
    uint32_t depth;              /* of directories; 0: as deep as they are */
    struct recording *recording; /* rows go there, too; NULL: none */
    const char *recording_name;
    struct sys_page *page; /* rows go there, too; NULL: none */
    bool histogram; /* for rows: with their histograms; for events: a histogram instead of the events */
};

/** Runs until the end. Returns the exit code. */
int sys_show(struct sys_show *o);
/** Like sys_show(), for the rows in a recording; `session` is not used. */
int sys_show_recorded(struct sys_show *o, const struct sys_tool *tool, const char *path);

#endif
