/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_TREE_H
#define VIEW_TREE_H

/*
 * Which rows of a tree are shown, and how they are set off. For the views of src/view only.
 */

#include "model/profile/rollup.h"

struct tree {
    const struct rollup *r;
    uint32_t *shown; /* rows, in the order of the tree; each with all above it */
    uint32_t *place; /* by row: where it is among these; PROFILE_NONE: it is not */
    size_t n;
    unsigned *indents; /* by row: how many rows are above it, those on a line with another not counted */
    bool *joins;       /* by row: it is all there is below the one before it, and can stand on its line */
};

/**
 * The `top` largest rows, 0: all; none that has nothing of what the tree is sorted by. With `lines`, rows that join
 * others are neither chosen nor counted.
 */
void tree_init(struct tree *t, const struct rollup *r, uint32_t top, bool lines);
void tree_release(struct tree *t);

#endif
