/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_SPEEDSCOPE_H
#define VIEW_SPEEDSCOPE_H

/*
 * A profile as speedscope reads it: https://www.speedscope.app/file-format-schema.json
 *
 * Runs in: the tool. Threads: pure. Owns: nothing.
 *
 * One file holds a "sampled" profile for each metric that is known (live, peak, allocated, allocations, temporary),
 * which share their frames. A sample is a stack of functions, files and lines, root first; where there are several
 * processes, each stands at the root of its stacks. Its weight is the estimate: bytes, or objects for allocations.
 * Weights are whole numbers such that those of all stacks of the same names add up to what folded_write() prints for
 * them.
 */

#include "model/profile/rollup.h"
#include "view/text/sink.h"

/** Of the options, those count that say which cells and samples do. `exporter` is who wrote it: "allium@0.1.0". The
 * profile
 *  is valid. */
void speedscope_write(struct sink *out, const struct profile *p, const struct rollup_options *o,
                      const char *exporter);

#endif
