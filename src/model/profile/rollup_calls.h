/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_ROLLUP_CALLS_H
#define MODEL_ROLLUP_CALLS_H

/*
 * For rollup.c only: finds the stacks that a function is on, the path from it to its callers or callees, and
 * the order of a tree.
 *
 * Runs in: the tool. Threads: one at a time. Owns: its cached results, until calls_release().
 */

#include "model/profile/rollup.h"

struct calls {
    const struct profile *p;
    const char *pattern;           /* NULL: all stacks match */
    unsigned char *lines, *stacks; /* by line, by stack: whether it matches, once known */
    struct frames frames;          /* of the last stack */
    size_t outermost, innermost;   /* the frames that match, if any do */
};

void calls_init(struct calls *c, const struct profile *p, const char *pattern);
void calls_release(struct calls *c);
/** Returns whether the function is on that stack. */
bool calls_fit(struct calls *c, uint32_t stack);
/**
 * Returns the path from the function. To its callers: from its outermost call (so that recursion is one
 * step), frame by frame upwards from *first. To its callees: from its innermost call downwards to the
 * function that requests the memory; wrappers are skipped unless the function is one. Returns the number of
 * frames. They are valid until the next call.
 */
size_t calls_way(struct calls *c, uint32_t stack, bool to_callers, const struct frame **first);

/** Sorts the rows in the order of their tree: below each row its children, larger ones first. */
void calls_order(struct rollup *r, int (*compare)(const void *, const void *, void *));

#endif
