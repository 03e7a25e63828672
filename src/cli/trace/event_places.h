/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_EVENT_PLACES_H
#define CLI_EVENT_PLACES_H

/*
 * Where the events of a trace were made, as texts, and the names of its processes and threads: from the recording that
 * lies in the trace's folder.
 *
 * Runs in: the tool. Threads: one at a time. Owns: the recording's profile, until event_places_close().
 */

#include "base/error.h"
#include "model/profile/profile.h"
#include "model/trace/event_query.h"

struct event_places;
struct trace_sites;

/** Returns 0, or -errno with a line. *out is NULL on failure. */
int event_places_open(struct event_places **out, const char *folder, struct error *e);
void event_places_close(struct event_places *p); /* NULL is allowed */
/** Give it all events of the trace, each before it is asked for the event's place: modules come and go. */
void event_places_take(struct event_places *p, const struct trace_event *e);
/** Returns the event's return address; 0: it has none. */
uint64_t event_places_site(const struct trace_event *e);
/** Finds the innermost function that is not a wrapper; else the outermost function of the address. An
 * event_place_fn: `arg` is the struct event_places. */
struct event_place event_places_of(void *arg, const struct trace_event *e);
/** Returns the sites of the events that were taken. */
struct trace_sites *event_places_sites(struct event_places *p);
/** Returns the recording, without figures. */
const struct profile *event_places_profile(const struct event_places *p);

#endif
