/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_ORDER_DOUBTS_H
#define COLLECT_ORDER_DOUBTS_H

/*
 * Finds the events of a trace that happened, or may have happened, before an event with an earlier time. There are two
 * reasons:
 *
 * - The clock. If times may be off by more than TICK_CLOCK_BOUND_NS (event_folder_residual_ns()), the order of two
 *   events is not sure if they are less than that apart, and are of different CPUs, or one is of the kernel, which has
 *   another clock. The later one is in doubt.
 * - A block. If the times say that a CPU freed a block less than 1 µs before another one allocated it, the allocation
 *   was earlier (early_frees.h).
 *
 * Runs in: the tool. Threads: one at a time. Owns: the addresses of live blocks, until order_doubts_free().
 */

#include <stdbool.h>

#include "collect/trace/event_folder.h"

struct order_doubts;

/** Only metadata are read from the folder. */
struct order_doubts *order_doubts_new(const struct event_folder *t);
void order_doubts_free(struct order_doubts *d); /* NULL is allowed */
/** Returns whether the event is in doubt. Call it with all events of the trace, in the order of their times. */
bool order_doubts_take(struct order_doubts *d, const struct trace_event *e);

#endif
