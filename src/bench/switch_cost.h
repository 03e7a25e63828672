/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BENCH_SWITCH_COST_H
#define BENCH_SWITCH_COST_H

/*
 * Measures what it costs to switch mechanisms on and off: in the helper, or from outside with uprobes of perf.
 *
 * Runs in: the tool. Threads: one. Owns: nothing; results belong to the caller.
 */

#include "bench/bench_run.h"

/**
 * Adds the mechanisms of the rows, and the sinks, that have a switch. Returns 0, or -errno and a line; one that cannot
 * be measured here is no error.
 */
int switch_cost_measure(const struct bench_options *o, struct bench_switchings *out, struct error *e);

#endif
