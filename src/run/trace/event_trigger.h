/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUN_EVENT_TRIGGER_H
#define RUN_EVENT_TRIGGER_H

/*
 * The triggers `event:NAME where QUERY`: looks at events in rings that overwrite their oldest ones meanwhile. What was
 * overwritten before it was looked at is counted.
 *
 * Runs in: the tool. Threads: one. Owns: queries and descriptions of events, until event_triggers_free().
 */

#include "base/error.h"
#include "collect/trace/ring_image.h"
#include "collect/trace/tick_clock.h"
#include "collect/trace/user_classes.h"
#include "model/trace/event_query.h"
#include "run/trace/trace_trigger.h"

struct event_triggers;

struct event_trigger_counts {
    uint64_t looked; /* events */
    uint64_t unseen; /* at most: overwritten before they were looked at */
};

/** Returns whether the trigger's name matches the class. */
bool event_trigger_names(const char *name, const struct event_class *class);
/** Makes the trigger's query for events of the class. Returns 0, or -EINVAL with a line; the caller frees *out. */
int event_trigger_query(struct event_query **out, const struct trace_event_trigger *t,
                        const struct event_class *class, struct error *e);

/** `t` stays as long. */
struct event_triggers *event_triggers_new(const struct trace_triggers *t);
void event_triggers_free(struct event_triggers *w); /* NULL is allowed */
/** Looks at what the rings got since the last time. Returns how many of the events are triggers. */
uint64_t event_triggers_look(struct event_triggers *w, struct ring_image *i, struct user_events *u,
                             const struct tick_clock *clock);
struct event_trigger_counts event_triggers_counts(const struct event_triggers *w);
/** At the end: returns whether a trigger could never fire, and says why, in a line. `number`: from 0 on. */
bool event_triggers_unfit(const struct event_triggers *w, unsigned number, struct error *e);

#endif
