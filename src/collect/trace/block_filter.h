/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_BLOCK_FILTER_H
#define COLLECT_BLOCK_FILTER_H

/*
 * Decides which events of an image a trace keeps (`allium trace --where`). The agent may have left out some allocations
 * that the query excludes (event_filter_add_options()); it writes all ends of lives.
 *
 * The query decides about the beginning of a block's life, and about the program's own events. Events of the group
 * `life` are all kept. The end of a life (free, realloc_begin) has no size: it is kept if its beginning was. So the
 * figures of the blocks that are kept are exact. A block that was kept stays kept when realloc changes it, whatever its
 * new size: the trace has both events of that call. If such a call fails, the old block lives on.
 *
 * An image that was forked begins without blocks: the ends of blocks that it inherited are dropped. If the event of an
 * end was lost, the next beginning at its address ends that block's life; if the query does not match this beginning,
 * the address is forgotten. If the event of a beginning was lost, its end is dropped.
 *
 * With times of the CPUs' counters, an end may come before its beginning (model/trace/early_frees.h). Then the caller
 * looks for the beginning among the next events, and the end is kept if its beginning will be. A block that the query
 * does not match is not known here. If such a block is freed, and another CPU allocates a matching block at its address
 * within EARLY_FREES_NS, the free is taken for the free of the second block.
 *
 * Runs in: the tool. Threads: one at a time. Owns: the addresses of live blocks, until it is freed. Pure.
 */

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"
#include "model/trace/trace_event.h"

struct event_filter; /* of a trace: the query */
struct event_blocks; /* of an image: the live blocks that are kept */

/**
 * Returns 0, or -EINVAL with a line: the query is invalid, or uses a field that is not known while a trace is made
 * (func, file, module). The caller frees *out in both cases.
 */
int event_filter_new(struct event_filter **out, const char *query, struct error *e);
/** Returns whether the query uses the time of events. */
bool event_filter_uses_time(const struct event_filter *f);
/**
 * Appends what the agent may judge itself, as options of its tracer (agent/tracer/tracer_options.h): terms of size and
 * thread that must match.
 */
void event_filter_add_options(const struct event_filter *f, struct buf *out);
void event_filter_free(struct event_filter *f); /* NULL is allowed */

struct event_blocks *event_blocks_new(void);
void event_blocks_free(struct event_blocks *b); /* NULL is allowed */

/** Returns the address of the block whose life the event ends, if no block is kept there; else 0. */
uint64_t event_blocks_lacks(const struct event_blocks *b, const struct trace_event *e);
/**
 * Returns whether the event is kept. Call it with the events of an image in the order of time. `birth`: if
 * event_blocks_lacks() returns an address, the event of another CPU with which the life of a block begins at that
 * address less than EARLY_FREES_NS later; NULL: there is none. `began_ns`: of the trace, CLOCK_MONOTONIC.
 */
bool event_filter_keeps(const struct event_filter *f, struct event_blocks *b, const struct trace_event *e,
                        const struct trace_event *birth, uint64_t began_ns);
/**
 * Returns whether the event is kept, like event_filter_keeps() with a query of the caller. `fits`: the query matches
 * the event. `early`: the event ends the life of a block whose beginning comes later, and will be kept. Call it with
 * all events that agent_events_read() reads.
 */
bool event_blocks_keep(struct event_blocks *b, const struct trace_event *e, bool fits, bool early);
/**
 * Follows the blocks of an image without a query. Call it with all events that agent_events_read() reads. Returns
 * whether the life of a block begins with the event, although it has ended with an earlier one (early_frees.h).
 */
bool event_blocks_follow(struct event_blocks *b, const struct trace_event *e);

#endif
