/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUN_MODULE_EVENTS_H
#define RUN_MODULE_EVENTS_H

/*
 * Which module was at an address when an event happened there: processes tell by events which modules come and go, and
 * other code may come to the address of a module that has gone.
 *
 * Runs in: the tool. Threads: one at a time. Owns: copies of these events, until module_events_free().
 */

#include <stdbool.h>

#include "model/trace/trace_event.h"

struct module_events;

struct module_events *module_events_new(void);
void module_events_free(struct module_events *m); /* NULL is allowed */
/** Returns whether events of this class tell that a module came, or that one went. */
bool module_events_has(uint16_t class_id);
/** Adds a copy of such an event; of more than 131,072 only the first. The events of a process image may come in any
 * order of their times. */
void module_events_add(struct module_events *m, struct trace_event e);
/**
 * Returns the number of the latest module event, not later than `e`, whose module has this address; 0: there is none.
 * All module events before `e` must have been added. The numbers are stable.
 */
uint32_t module_events_before(struct module_events *m, const struct trace_event *e, uint64_t address);
/**
 * Returns the event that names the module at the address. `number`: from module_events_before(); for 0, the first event
 * of that address if it is an unload: the module was there from the start. NULL: no event. Valid until
 * module_events_free().
 */
const struct trace_event *module_events_told(const struct module_events *m, uint64_t image_id,
                                             uint64_t address, uint32_t number);

#endif
