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
#define TRACE_EVENTS_MAX 8

/* event:NAME where QUERY. `name` is a pattern as in --events, or `malloc` for `allium:malloc`; `query`: see
 * model/trace/event_query.h; NULL: each event of that name. */
struct trace_event_trigger {
    char *name, *query;
};

struct trace_triggers {
    bool exit;         /* exit!=0: the command ends with another code than 0 */
    uint64_t every_ns; /* 0: not */
    struct alert alerts[TRACE_ALERTS_MAX];
    unsigned n_alerts;
    struct trace_event_trigger events[TRACE_EVENTS_MAX];
    unsigned n_events;
};

/** Adds a trigger. Returns 0, or -EINVAL with a line that says what to write instead. */
int trace_triggers_add(struct trace_triggers *t, const char *text, struct error *e);
/**
 * Returns what --events must have: `list` (NULL: alloc), the program's events that are triggers, and the
 * event of ALLIUM_SNAPSHOT(). The caller frees it.
 */
char *trace_triggers_events(const struct trace_triggers *t, const char *list);
void trace_triggers_release(struct trace_triggers *t);

#endif
