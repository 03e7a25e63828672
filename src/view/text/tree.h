/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_TREE_H
#define VIEW_TREE_H

/* Which rows of a tree are shown, and how they are indented. Only for the views in src/view. */

#include "model/profile/rollup.h"

struct tree {
    const struct rollup *r;
    uint32_t *shown; /* rows to show, in the order of the tree; each with all rows above it */
    uint32_t *place; /* by row: its index in `shown`; PROFILE_NONE: not shown */
    size_t n;
    unsigned *indents; /* by row: number of lines above it in the tree; rows that share a line count once */
    bool *joins;       /* by row: it is the only child of the row before it, and can share its line */
};

/**
 * Selects the `top` largest rows (0: all), without rows for which the sort value is 0. With `lines`, rows
 * that share a line with others are neither selected nor counted.
 */
void tree_init(struct tree *t, const struct rollup *r, uint32_t top, bool lines);
void tree_release(struct tree *t);

#endif
