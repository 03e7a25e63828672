/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUN_TRACE_TRIGGER_H
#define RUN_TRACE_TRIGGER_H

/*
 * What makes `allium trace --flight` write a snapshot: the values of --snapshot-on.
 *
 * Runs in: the tool. Threads: pure. Owns: the alerts, until trace_triggers_release().
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "query/alert.h"

#define TRACE_ALERTS_MAX 4

struct trace_triggers {
    bool exit;         /* exit!=0: the command ends with another code than 0 */
    bool signal;       /* the command is ended by a signal */
    uint64_t every_ns; /* 0: not */
    struct alert alerts[TRACE_ALERTS_MAX];
    unsigned n_alerts;
};

/** Adds a trigger. Returns 0, or -EINVAL with a line that says what to write instead. */
int trace_triggers_add(struct trace_triggers *t, const char *text, struct error *e);
void trace_triggers_release(struct trace_triggers *t);

#endif
