/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUN_SUM_PROCESS_H
#define RUN_SUM_PROCESS_H

/*
 * `allium trace --sum PID`: adds up the events of a process that runs already, until a signal comes, a time is over or
 * the process ends. The process writes the events into its rings, as for a trace, and the tool adds them up. So the
 * process needs no table of sums, which only a start can give it; but events can be lost.
 *
 * Runs in: the tool. Threads: the caller's, and those of ring_follow.h and kernel_follow.h. Owns: nothing.
 */

#include "model/profile/wrappers.h"
#include "run/sum/sum_reports.h"
#include "run/trace/trace_attach.h"

struct sum_process_options {
    const struct sum_spec *spec;
    pid_t pid;
    uint64_t kernel_ring_bytes;      /* of struct kernel_follow_options, for events of the kernel */
    uint64_t duration_ns;            /* 0: until a signal */
    const struct wrappers *wrappers; /* functions that are passed over when a call is named */
    struct sum_reports reports;      /* its caller's members */
    void (*started)(pid_t pid);      /* called when it has begun; NULL: nothing is */
    /** Called every 50 ms, with the argument of the reports. */
    void (*step)(void *arg);
};

/**
 * Returns 0, or -errno with a line; -EPERM and -EOPNOTSUPP: what is asked for is not possible here. With 0 the last
 * report was given.
 */
int sum_process(const struct sum_process_options *o, struct trace_attach_result *out, struct error *e);

#endif
