/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BENCH_KERNEL_EVENT_H
#define BENCH_KERNEL_EVENT_H

/*
 * perf events of a probe's target: of uprobes and kprobes by the kernel's own kinds of event, of the system call by the
 * number that tracefs has for its tracepoint.
 *
 * Runs in: the tool, as root. Threads: any. Owns: nothing.
 */

#include <linux/perf_event.h>

#include "base/vec.h"
#include "bench/kernel/kernel_probe.h"

struct kernel_threads {
    struct VEC(pid_t) ids;
};

/** Adds the threads that the process has now; the caller releases them. Returns 0, or -errno with a line. */
int kernel_threads_read(struct kernel_threads *t, pid_t pid, struct error *e);

/**
 * Opens an event of the target; perf's own counters and rings are then those of its thread `pid`. `attr` has what the
 * caller wants of it: its type and configuration are set here. Returns a descriptor, which the caller closes, or -errno
 * with a line.
 */
int kernel_event_open(const struct kernel_probe_target *target, struct perf_event_attr *attr,
                      struct error *e);

#endif
