/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_DIFF_FIGURES_H
#define VIEW_DIFF_FIGURES_H

/*
 * The figures of a comparison as text, with the mark of those that may be too high or too low
 * (model/profile/figure_bounds.h).
 *
 * Runs in: the tool. Threads: pure. Owns: nothing.
 */

#include "model/profile/profile_diff.h"
#include "view/text/text.h"

/** Appends the mark of a change, if one of its sides has it. */
void diff_figures_mark(struct buf *b, const struct diff *d, enum rollup_metric m);
/** Appends the figure of DIFF_BEFORE or DIFF_AFTER. */
void diff_figures_side(struct buf *b, const struct diff *d, enum rollup_metric m, const struct diff_value *v,
                       enum diff_part part, bool count);
/** Appends a change with its interval, in words if it is none, or within noise. */
void diff_figures_change(struct buf *b, const struct diff *d, enum rollup_metric m,
                         const struct diff_change *c, bool count);

#endif
