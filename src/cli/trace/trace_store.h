/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_TRACE_STORE_H
#define CLI_TRACE_STORE_H

/* `allium snapshot PID --trace`: the events that the rings of a process have, as a trace. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct trace_store_options {
    pid_t pid;
    const char *output; /* the folder; NULL: NAME.PID.snapshot.trace */
    bool force;
    uint64_t last_ns; /* 0: all events */
};

/** Writes the trace, and says so. *folder: of the trace, which the caller frees; NULL on failure. Returns an exit code,
 * after a line. */
int trace_store_write(const struct trace_store_options *o, char **folder);

#endif
