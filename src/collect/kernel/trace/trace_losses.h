/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_TRACE_LOSSES_H
#define COLLECT_TRACE_LOSSES_H

/*
 * What the kernel says that a trace buffer has lost: per_cpu/cpuN/stats of tracefs.
 *
 * Runs in: the tool. Threads: pure. Owns: nothing.
 */

#include <stdint.h>

/** Returns the sum of overruns and dropped events in the text. */
uint64_t trace_losses_of(const char *stats);

#endif
