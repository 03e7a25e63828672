/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUN_WORKLOAD_H
#define RUN_WORKLOAD_H

/*
 * A command that runs without the agent while something else is observed. It starts when the observer is
 * ready, possibly as another user.
 */

#include <sys/types.h>

#include "base/error.h"

struct workload {
    pid_t pid;
    int process_fd; /* readable when it has ended */
    int gate_fd, answer_fd;
};

/** Forks; the child waits. `user`: name or number of the user that the command runs as; NULL: our own.
 * Returns 0, or -errno with a line. */
int workload_prepare(struct workload *b, char **argv, const char *user, struct error *e);
/** Lets the command begin. Returns 0 or -errno; -ENOENT and -EACCES are the errors of exec. */
int workload_go(struct workload *b);
/** Reaps the command, which has ended. Returns its exit code as a shell gives it. */
int workload_reap(struct workload *b);
/** A child that still waits ends. */
void workload_release(struct workload *b);

#endif
