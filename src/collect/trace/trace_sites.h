/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_TRACE_SITES_H
#define COLLECT_TRACE_SITES_H

/*
 * Where the calls in a trace were made: from the return addresses of events to locations of a profile, with the images
 * and modules of the recording that lies beside the trace. What the recording lacks is added to the profile.
 *
 * Runs in: the tool. Threads: one at a time. Owns: its tables, until trace_sites_free(); the profile is the caller's.
 */

#include <stdbool.h>

#include "model/profile/profile.h"
#include "model/trace/trace_event.h"

struct trace_sites;

/** The profile has to live as long as this does. */
struct trace_sites *trace_sites_new(struct profile *p);
void trace_sites_free(struct trace_sites *s); /* NULL is allowed */

/** Returns whether the event tells that a module came, see trace_sites_take(). */
bool trace_sites_is_module(const struct trace_event *e);
/**
 * Takes such an event, in the order of time: from now on the addresses of this module belong to it. An address of which
 * no event tells belongs to the last module that the image had there.
 */
void trace_sites_take(struct trace_sites *s, const struct trace_event *e);
/** Returns the profile's number of the image of an event. */
uint32_t trace_sites_image(struct trace_sites *s, const struct trace_event *e);
/** Returns the profile's number of the thread of an event of that image. */
uint32_t trace_sites_thread(struct trace_sites *s, const struct trace_event *e, uint32_t image);
/** Returns the profile's number of the location to which a call of that image returns. */
uint32_t trace_sites_location(struct trace_sites *s, uint32_t image, uint64_t return_address);

#endif
