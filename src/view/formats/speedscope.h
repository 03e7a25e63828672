/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_SPEEDSCOPE_H
#define VIEW_SPEEDSCOPE_H

/*
 * A profile in the format of speedscope: https://www.speedscope.app/file-format-schema.json
 *
 * Runs in: the tool. Threads: pure. Owns: nothing.
 *
 * One file holds a "sampled" profile for each known metric (live, peak, allocated, allocations, temporary);
 * they share their frames. A sample is a stack of functions, files and lines, root first; with several
 * processes, the process is the root. The weight of a sample is the estimate: bytes, or objects for
 * allocations. Weights are whole numbers; those of all stacks with the same names add up to the number that
 * folded_write() prints for them.
 */

#include "model/profile/rollup.h"
#include "view/text/sink.h"

/**
 * Writes the file. Only the options that select cells and samples have an effect. `exporter` is the name of the
 * writing program: "allium@0.1.0". The profile must be valid.
 */
void speedscope_write(struct sink *out, const struct profile *p, const struct rollup_options *o,
                      const char *exporter);

#endif
