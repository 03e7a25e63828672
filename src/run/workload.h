/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUN_WORKLOAD_H
#define RUN_WORKLOAD_H

/*
 * A command that runs while something else is watched: started when that is ready, without the agent, perhaps as
 * another user than we are.
 *
 * Runs in: the tool. Threads: one. Owns: the descriptors, until workload_release().
 */

#include <sys/types.h>

#include "base/error.h"

struct workload {
    pid_t pid;
    int process_fd; /* readable when it has ended */
    int gate_fd, answer_fd;
};

/** Forks; the child waits. `user`: whom it runs as, a name or number; NULL: as we do. 0 or -errno with a line. */
int workload_prepare(struct workload *b, char **argv, const char *user, struct error *e);
/** Lets it begin. 0, or -errno: -ENOENT and -EACCES are exec's own answers. */
int workload_go(struct workload *b);
/** Reaps the command, which has ended; its exit code as a shell gives it. */
int workload_reap(struct workload *b);
/** One that was never let go ends without a trace. */
void workload_release(struct workload *b);

#endif
