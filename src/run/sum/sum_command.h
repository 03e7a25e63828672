/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUN_SUM_COMMAND_H
#define RUN_SUM_COMMAND_H

/*
 * `allium trace --sum`: starts a command, and adds up what its processes sum (sum/sum_layout.h) until it has ended. No
 * recording is made. What a process has summed is taken when it ends, and its files are removed. Events of the kernel
 * come through rings, and the tool adds them up; then the command runs without the agent.
 *
 * Runs in: the tool. Threads: one. Owns: the folder of ledgers.
 */

#include "model/profile/wrappers.h"
#include "model/trace/event_sums.h"
#include "run/record.h"
#include "run/sum/sum_reports.h"

struct sum_command_options {
    const struct sum_spec *spec;
    char **argv;
    bool follow; /* observe children, too */
    uint64_t period_bytes;
    uint64_t kernel_ring_bytes;      /* of struct kernel_follow_options, for events of the kernel */
    const struct wrappers *wrappers; /* functions that are passed over when a call is named */
    struct sum_reports reports;      /* its caller's members */
    /** Called every 50 ms, with the argument of the reports. */
    void (*step)(void *arg);
};

/**
 * Returns 0, or -errno with a line; -EPERM and -EOPNOTSUPP with stage RECORD_NOT_STARTED: events of the kernel are not
 * possible here. Of the result, `stage`, `wait_status` and `kernel` are set.
 */
int sum_command(const struct sum_command_options *o, struct record_result *result, struct error *e);

#endif
