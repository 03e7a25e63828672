/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_AGENT_EVENTS_H
#define COLLECT_AGENT_EVENTS_H

/*
 * The events of the agent, as wire/event_schema.h lists them.
 *
 * Runs in: the tool. Threads: any. Pure data.
 */

#include "base/sigsafe/event_class.h"

/** Returns the classes and sets *n to their number. They are static. */
const struct event_class *agent_events(uint32_t *n);

#endif
