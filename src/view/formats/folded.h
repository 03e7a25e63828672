/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_FOLDED_H
#define VIEW_FOLDED_H

/*
 * Folded stacks, what flame graph programs and speedscope read: "root;...;leaf INTEGER" lines.
 *
 * Runs in: the tool. Threads: pure. Owns: nothing.
 */

#include "model/profile/rollup.h"
#include "view/text/sink.h"

/**
 * Stacks of the same names become one line, in alphabetical order; lines of 0 are left out. The rollup is one by stack;
 * the metric is any but age: bytes, or objects for allocations.
 */
void folded_write(struct sink *out, const struct rollup *r, enum rollup_sort metric);

/** Appends a name, without what would separate frames, end the line or reach a terminal as more than text. */
void folded_add_frame(struct buf *b, const char *name);
/** Appends the names of a stack as they stand in a line. `frames` is room to work in, the caller's. */
void folded_add_stack(struct buf *b, const struct profile *p, struct frames *frames, uint32_t stack);

#endif
