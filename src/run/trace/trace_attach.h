/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUN_TRACE_ATTACH_H
#define RUN_TRACE_ATTACH_H

/*
 * `allium trace PID`: traces a process that runs already, until a signal comes, a time is over or the process ends.
 *
 * Runs in: the tool. Threads: the caller's, and that of ring_follow.h. Owns: nothing.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "run/trace/ring_follow.h"

struct trace_attach_options {
    pid_t pid;
    const char *folder; /* NULL: ./NAME.PID.trace */
    bool force;
    const char *where;                 /* a query: the events that are kept, see ring_follow.h; NULL: all */
    uint64_t limit_bytes, duration_ns; /* 0: the default, and until a signal */
    void (*started)(pid_t pid, const char *folder); /* called when it has begun; NULL: nothing is */
};

/** *folder: of the trace; the caller frees it. Returns 0, or -errno with a line. */
int trace_attach(const struct trace_attach_options *o, char **folder, struct ring_follow_counts *out,
                 struct error *e);

#endif
