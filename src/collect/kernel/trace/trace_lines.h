/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_TRACE_LINES_H
#define COLLECT_TRACE_LINES_H

/*
 * The lines of a text.
 *
 * Runs in: the tool. Threads: one. Owns: the line that was read last, until trace_lines_free().
 */

#include <stddef.h>

#include "base/error.h"
#include "collect/kernel/trace/packed_input.h"

struct trace_lines;

/** A longer line is read as several. */
#define TRACE_LINE_MAX (64u << 10)

/** `from` must outlive it. Never NULL. */
struct trace_lines *trace_lines_new(struct packed_input *from);
/** NULL is allowed. */
void trace_lines_free(struct trace_lines *l);
/** Returns 1 and a line without its newline, which stays until the next call; 0: the end; or -errno with a line in
 * `e`, as packed_input_read(). */
int trace_lines_next(struct trace_lines *l, const char **line, size_t *len, struct error *e);

#endif
