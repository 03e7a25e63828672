/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_PERF_COUNTERS_H
#define COLLECT_PERF_COUNTERS_H

/*
 * Counts perf events about memory on all processors: page faults by the kernel, and hardware events if there
 * are any. Nothing is sampled: counters are read when needed.
 */

#include "model/overview/overview.h"

struct perf_counters {
    struct VEC(int) fds; /* processors of the first event, then of the second, ... */
    unsigned processors;
    uint64_t before[OVERVIEW_EVENTS_MAX];
    bool open[OVERVIEW_EVENTS_MAX]; /* on all processors */
};

/** Opens the events that exist. Returns 0, or -errno when even page faults cannot be counted. */
int perf_counters_open(struct perf_counters *c);
void perf_counters_close(struct perf_counters *c);
/** Reads the counts since the previous call. */
void perf_counters_read(struct perf_counters *c, struct overview *m);

#endif
