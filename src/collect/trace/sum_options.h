/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_SUM_OPTIONS_H
#define COLLECT_SUM_OPTIONS_H

/*
 * The options of --sum, as values of environment variables that the target reads: agent/tracer/tracer_sum.h,
 * tag/user_sums.h.
 *
 * Runs in: the tool. Threads: pure.
 */

#include "base/buf.h"
#include "base/error.h"
#include "model/trace/sum_spec.h"

/**
 * Checks an event of the agent or of the kernel, and its fields. Returns 0, or -EINVAL with a line. Events of programs
 * are not known.
 */
int sum_options_check(const struct sum_spec *spec, struct error *e);
/** Appends the part of ALLIUM_SITES, or, for events of a program, the value of ALLIUM_EVENTS. */
void sum_options_add(const struct sum_spec *spec, struct buf *out);

#endif
