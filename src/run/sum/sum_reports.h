/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUN_SUM_REPORTS_H
#define RUN_SUM_REPORTS_H

/*
 * When the tables of `allium trace --sum` are due, and the rates in them: those since the last report, and at the end
 * those of the whole run.
 *
 * Runs in: the tool. Threads: one. Owns: the sums of the last report, until sum_reports_end().
 */

#include <stdbool.h>
#include <stdint.h>

#include "model/trace/event_sums.h"

struct sum_reports {
    /* of the caller */
    uint64_t interval_ns; /* 0: one report, at the end */
    /** Called with each of them. The sums are valid until it returns. */
    void (*report)(void *arg, struct event_sums *sums, bool last);
    void *arg;
    /* own */
    struct event_sums *before; /* at the last report */
    uint64_t began_ns, reported_ns, due_ns;
};

/** From now on events are added up. */
void sum_reports_begin(struct sum_reports *r);
/** Returns whether a report is due. */
bool sum_reports_due(struct sum_reports *r);
/** Reports. Takes over the sums. */
void sum_reports_give(struct sum_reports *r, struct event_sums *sums, bool last);
void sum_reports_end(struct sum_reports *r);

#endif
