/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_FIGURE_BOUNDS_H
#define MODEL_FIGURE_BOUNDS_H

/*
 * Which figures of a trace may be too high or too low, and are shown with a mark: all, if events were lost or the trace
 * was cut short; if the order of its events is not sure (clock_kind_has_bounds()), all but those of what was allocated.
 *
 * Runs in: the tool. Threads: pure functions.
 */

#include "model/profile/profile_diff.h"

/** Returns whether figures of this metric may be too high or too low. False if the profile is not of a trace. */
bool figure_bounds_of(const struct profile *p, enum rollup_metric m);
/** Returns figure_bounds_of() of any capture of this side. */
bool figure_bounds_of_side(const struct diff *d, enum profile_pair_side side, enum rollup_metric m);

#endif
