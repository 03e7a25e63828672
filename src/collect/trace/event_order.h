/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_EVENT_ORDER_H
#define COLLECT_EVENT_ORDER_H

/*
 * Orders the events of an image that have no times (`allium trace --clock none`). Within a ring they are in order. Of
 * different rings it is known that two lives of one address do not overlap: between two beginnings lies an end. So an
 * event waits until the address is in the state that it needs.
 *
 * Several orders may be possible. The first one that fits is taken, without a look at what follows: if the same few
 * addresses move between CPUs again and again, events may be left that fit nowhere; they are placed all the same. Both
 * are counted: beginnings of lives while other rings had one at this address, and events that did not fit.
 *
 * Runs in: the tool. Threads: one at a time. Owns: the state of addresses, until it is freed. Pure.
 */

#include <stdbool.h>
#include <stdint.h>

#include "model/trace/trace_event.h"

struct event_order;

struct event_order *event_order_new(void);
void event_order_free(struct event_order *o); /* NULL is allowed */

/** Call this for each event of a ring when it is read. */
void event_order_expect(struct event_order *o, const struct trace_event *e);
/*
 * Whether an event may be the next one. LATER: it may, but it follows an event of its own ring at this address, and
 * another ring has an event of this kind that may wait for just this state.
 */
enum event_order_turn { EVENT_ORDER_NOT_YET, EVENT_ORDER_LATER, EVENT_ORDER_NOW };
/** `settled`: all events that happened before it have been read. */
enum event_order_turn event_order_turn(const struct event_order *o, const struct trace_event *e,
                                       bool settled);
/** Returns whether several rings have an event of the same kind at the same address: one may take its place. */
bool event_order_has_rivals(const struct event_order *o, const struct trace_event *e);
/** Returns whether `b` may take the place of `a`: it is of the same kind, at the same address. */
bool event_order_are_rivals(const struct trace_event *a, const struct trace_event *b);
/** Returns whether the life of a block at that address begins with the event. */
bool event_order_begins_at(const struct trace_event *e, uint64_t address);
/** Makes the event the next one, also if it is not ready: of events that wait for each other, one has to begin. */
void event_order_pass(struct event_order *o, const struct trace_event *e);
/** Returns the number of events whose place is not sure. */
uint64_t event_order_ambiguous(const struct event_order *o);

#endif
