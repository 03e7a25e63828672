/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_LTTNG_WRITER_H
#define VIEW_LTTNG_WRITER_H

/*
 * Writes the events of one domain of a trace as LTTng would have: metadata, and a file for each CPU. Each event
 * becomes one event (lttng_rules.h).
 *
 * Runs in: the tool. Threads: one. Owns: a descriptor, a packet for each CPU, and a few words for each thread, until
 * lttng_writer_free().
 */

#include "base/error.h"
#include "model/trace/trace_event.h"
#include "view/lttng/lttng_metadata.h"

struct lttng_writer;

/**
 * Writes the metadata into the folder, which exists and is empty. The classes of `t` stay the caller's. Returns 0, or
 * -errno with a line; in both cases the caller frees *out.
 */
int lttng_writer_new(struct lttng_writer **out, const char *folder, const struct lttng_trace *t,
                     const struct event_class *classes, size_t n, struct error *e);
/**
 * Adds an event, in the order of time. `name`: of its thread. `lost`: events of its CPU that were lost until now.
 * Returns 0, or -errno with a line.
 */
int lttng_writer_event(struct lttng_writer *w, const struct trace_event *event, const char *name,
                       uint64_t lost, struct error *e);
/** Writes the rest of a CPU's file. `lost`: all events of the CPU that were lost. Returns 0, or -errno with a line. */
int lttng_writer_finish(struct lttng_writer *w, uint32_t cpu, uint64_t lost, struct error *e);
/** Returns how many streams there are, and the CPU of each. */
size_t lttng_writer_streams(const struct lttng_writer *w);
uint32_t lttng_writer_cpu(const struct lttng_writer *w, size_t n);
void lttng_writer_free(struct lttng_writer *w); /* NULL is allowed */

#endif
