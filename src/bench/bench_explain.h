/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BENCH_EXPLAIN_H
#define BENCH_EXPLAIN_H

/*
 * The parts of which the cost of a row consists, for --explain. Another part is a loop in hooks/bench_part_loops.c and
 * a line in bench_explain.c.
 *
 * Runs in: the tool. Threads: one. Owns: nothing.
 */

#include "bench/bench_run.h"
#include "model/bench/bench_parts.h"

/**
 * Adds the pairs that must be measured to explain the row, which comes first, to `o`, and its parts to `parts`.
 */
void bench_explain_plan(struct bench_options *o, struct bench_parts *parts, const struct bench_mechanism *m,
                        const struct bench_sink_doc *s);

#endif
