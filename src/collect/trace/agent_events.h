/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_AGENT_EVENTS_H
#define COLLECT_AGENT_EVENTS_H

/*
 * The events of the agent, as wire/event_schema.h lists them.
 *
 * Runs in: the tool. Threads: any. Pure data.
 */

#include <stdbool.h>

#include "base/sigsafe/event_class.h"
#include "model/trace/trace_event.h"
#include "wire/event_schema.h"

/** Returns the classes and sets *n to their number. They are static. */
const struct event_class *agent_events(uint32_t *n);

/* An event of the agent. Fields that its class does not have are 0, or LEDGER_NONE. */
struct agent_event {
    enum event_id id; /* the class with a site: event_id_plain() */
    uint64_t ptr, size, site, stack;
};

/** Reads an event. Returns false if it is not one of the agent, with the fields that this version writes. */
bool agent_events_read(const struct trace_event *event, struct agent_event *out);

#endif
