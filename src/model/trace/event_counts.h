/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_EVENT_COUNTS_H
#define MODEL_EVENT_COUNTS_H

/*
 * Counts the events of a trace by their kind, thread or CPU.
 *
 * Runs in: the tool. Threads: one at a time. Owns: its rows, until event_counts_free().
 */

#include "model/table/table.h"
#include "model/trace/trace_event.h"

enum event_counts_group { EVENT_COUNTS_BY_EVENT, EVENT_COUNTS_BY_THREAD, EVENT_COUNTS_BY_CPU };

struct event_counts;

struct event_counts *event_counts_new(enum event_counts_group group);
void event_counts_free(struct event_counts *c); /* NULL is allowed */
void event_counts_add(struct event_counts *c, const struct trace_event *e);
/** Adds events of a CPU that were lost while they were recorded; by events and threads it is not known, and ignored. */
void event_counts_add_lost(struct event_counts *c, uint32_t cpu, uint64_t events);
/** Returns the rows, the most frequent first, at most `top` (0: all). The caller frees the table. */
struct table *event_counts_table(const struct event_counts *c, uint32_t top);

#endif
