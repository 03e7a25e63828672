/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_PERF_OPEN_H
#define COLLECT_PERF_OPEN_H

/*
 * Opens perf events: the one caller of perf_event_open(2), for which libc has no function.
 *
 * Runs in: the tool. Threads: any.
 */

#include <sys/types.h>

#include <linux/perf_event.h>

/**
 * Opens an event of the thread `tid` (-1: of all threads) on the processor `cpu` (-1: on all), in no group. Returns a
 * descriptor, closed by exec and owned by the caller, or -errno.
 */
int perf_open(const struct perf_event_attr *attr, pid_t tid, int cpu);

#endif
