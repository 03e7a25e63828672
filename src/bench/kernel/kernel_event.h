/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BENCH_KERNEL_EVENT_H
#define BENCH_KERNEL_EVENT_H

/*
 * perf events of a probe's target: of uprobes by the kernel's own kind of event, of the system call by the number that
 * tracefs has for its tracepoint.
 *
 * Runs in: the tool, as root. Threads: any. Owns: nothing.
 */

#include <linux/perf_event.h>

#include "bench/kernel/kernel_probe.h"

/**
 * Opens an event of the target. `attr` has what the caller wants of it: its type and configuration are set here. Returns
 * a descriptor, which the caller closes, or -errno with a line.
 */
int kernel_event_open(const struct kernel_probe_target *target, struct perf_event_attr *attr,
                      struct error *e);

#endif
