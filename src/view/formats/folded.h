/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_FOLDED_H
#define VIEW_FOLDED_H

/* Folded stacks, the input of flame graph programs and speedscope: lines "root;...;leaf INTEGER". */

#include "model/profile/rollup.h"
#include "view/text/sink.h"

/**
 * Merges stacks of equal names into one line, in alphabetical order; lines of 0 are left out. The rollup is
 * by stack. The metric is any but age: bytes, or objects for allocations.
 */
void folded_write(struct sink *out, const struct rollup *r, enum rollup_sort metric);

/** Appends a name, without characters that would separate frames, end the line or control a terminal. */
void folded_add_frame(struct buf *b, const char *name);
/** Appends the names of a stack as they stand in a line. `frames` is a working buffer of the caller. */
void folded_add_stack(struct buf *b, const struct profile *p, struct frames *frames, uint32_t stack);

#endif
