/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_ROLLUP_CALLS_H
#define MODEL_ROLLUP_CALLS_H

/*
 * For rollup.c only: which stacks a function is on, the way from it to its callers or callees, and the order of a tree.
 *
 * Runs in: the tool. Threads: one at a time. Owns: what it has found out, until calls_release().
 */

#include "model/profile/rollup.h"

struct calls {
    const struct profile *p;
    const char *pattern;           /* NULL: nothing is asked, and all stacks are taken */
    unsigned char *lines, *stacks; /* by line, by stack: whether they fit, once known */
    struct frames frames;          /* of the stack asked about last */
    size_t outermost, innermost;   /* frames that fit, when there is one */
};

void calls_init(struct calls *c, const struct profile *p, const char *pattern);
void calls_release(struct calls *c);
/** Whether the function is on that stack. */
bool calls_fit(struct calls *c, uint32_t stack);
/**
 * A walk away from the function: to those that called it (from its outermost call, so that recursion is one step),
 * frame by frame upwards from *first; or to what it called (from its innermost call to who asked: wrappers are passed
 * over unless it is one), downwards. The number of frames. They are good until the next question.
 */
size_t calls_way(struct calls *c, uint32_t stack, bool to_callers, const struct frame **first);

/** Puts the rows in the order of their tree: below each those it leads to, larger ones first. */
void calls_order(struct rollup *r, int (*compare)(const void *, const void *, void *));

#endif
