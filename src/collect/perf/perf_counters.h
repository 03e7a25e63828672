/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_PERF_COUNTERS_H
#define COLLECT_PERF_COUNTERS_H

/*
 * Events of perf about memory, counted on all processors: page faults by the kernel, and what the hardware counts,
 * where it does. Nothing is sampled: a counter is read when it is looked at.
 *
 * Runs in: the tool. Threads: one at a time. Owns: its descriptors, until perf_counters_close().
 */

#include "model/overview/overview.h"

struct perf_counters {
    struct VEC(int) fds; /* processors of the first event, then of the second, ... */
    unsigned processors;
    uint64_t before[OVERVIEW_EVENTS_MAX];
    bool open[OVERVIEW_EVENTS_MAX]; /* on all processors */
};

/** Opens what there is. 0, or -errno when even page faults cannot be counted. */
int perf_counters_open(struct perf_counters *c);
void perf_counters_close(struct perf_counters *c);
/** What was counted since the call before. */
void perf_counters_read(struct perf_counters *c, struct overview *m);

#endif
