/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_LTTNG_NAMES_H
#define VIEW_LTTNG_NAMES_H

/*
 * The names of threads in a trace: those of the recording, and for the kernel's events those that its scheduler events
 * tell on the way.
 *
 * Runs in: the tool. Threads: one at a time. Owns: its tables, until lttng_names_free(); the profile is the caller's.
 */

#include "model/profile/profile.h"
#include "model/trace/trace_event.h"

struct lttng_names;

/** The profile has to live as long as this does. */
struct lttng_names *lttng_names_new(const struct profile *p);
void lttng_names_free(struct lttng_names *n); /* NULL is allowed */

/** Learns names from an event of the kernel. Call this for each event, in the order of time. */
void lttng_names_learn(struct lttng_names *n, const struct trace_event *e);
/** Returns the name of the event's thread, "" if it is not known. It is valid until the next call. */
const char *lttng_names_of(const struct lttng_names *n, const struct trace_event *e);

#endif
