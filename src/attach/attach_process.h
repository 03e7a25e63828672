/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ATTACH_PROCESS_H
#define ATTACH_PROCESS_H

/*
 * Observes a process that runs already, and leaves it as it was.
 *
 * Runs in: the tool; stops threads of the process (ptrace).
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct attach_options {
    const char *agent; /* path of the full agent */
    const char *dir;   /* of the ledgers; NULL: the default of the process's user */
    uint64_t period_bytes;
    uint64_t limit_bytes; /* of the ledger; 0: the default */
    bool sites;
    unsigned timeout_ms;
};

/** What was done. */
struct attached {
    char comm[16], library[64];
    unsigned threads, functions;
    uint64_t longest_stop_ns; /* of any thread */
};

/** Returns 0, or -errno with a line; then nothing is changed, but that the library may be mapped. */
int attach_begin(pid_t pid, const struct attach_options *o, struct attached *out, struct error *e);
int attach_end(pid_t pid, unsigned timeout_ms, struct attached *out, struct error *e);

#endif
