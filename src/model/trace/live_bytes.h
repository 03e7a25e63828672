/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_LIVE_BYTES_H
#define MODEL_LIVE_BYTES_H

/*
 * How many bytes each program of a trace has allocated and not freed, from event to event. Frees of blocks without an
 * allocation in the trace, and of those that a child got from its parent, change nothing.
 *
 * Runs in: the tool. Threads: one at a time. Owns: its tables, until live_bytes_free(). Pure.
 */

#include <stdbool.h>

#include "model/trace/trace_event.h"

struct live_bytes;

struct live_bytes *live_bytes_new(void);
void live_bytes_free(struct live_bytes *l); /* NULL is allowed */
/** Takes the next event of the trace. Returns whether it has changed the bytes of its program, which *bytes then tells.
 */
bool live_bytes_take(struct live_bytes *l, const struct trace_event *e, uint64_t *bytes);
/** Returns the bytes of all programs together, also of those that have ended. */
uint64_t live_bytes_sum(const struct live_bytes *l);

#endif
