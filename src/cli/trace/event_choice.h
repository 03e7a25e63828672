/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_EVENT_CHOICE_H
#define CLI_EVENT_CHOICE_H

/*
 * Selects the events of a trace that a query on its profile matches (--where of export and report). The query sees the
 * stack, size, process and thread of an event. A free and the beginning of realloc belong to their block: they are kept
 * if the block's allocation is kept (collect/trace/block_filter.h).
 *
 * The trace is read twice: a free may come before its block's allocation (model/trace/early_frees.h), so that only the
 * second reading knows about it.
 *
 * Runs in: the tool. Threads: one at a time. Owns: its tables, until event_choice_free().
 */

#include "cli/profile_filter.h"
#include "cli/trace/event_places.h"

struct event_choice;

/** `places` must stay as long as this. `f`: NULL, or the query, which must stay, too. */
struct event_choice *event_choice_new(struct profile_filter *f, struct event_places *places);
void event_choice_free(struct event_choice *c); /* NULL is allowed */
/** Begins the second reading. */
void event_choice_again(struct event_choice *c);
/** Returns whether the event is kept. Call it with all events of the trace, in their order, each after
 * event_places_take(). */
bool event_choice_takes(struct event_choice *c, const struct trace_event *e);

#endif
