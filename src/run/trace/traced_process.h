/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUN_TRACED_PROCESS_H
#define RUN_TRACED_PROCESS_H

/*
 * A process that has rings of events, running or ended, and the switch of its tracing.
 *
 * Runs in: the tool. Threads: one. Owns: the paths, until traced_process_release().
 */

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "collect/ledger/ledger_scan.h"

struct traced_process {
    struct ledger_scan scan;
    const struct ledger_entry *entry; /* its ledger */
    char *dir, *rings;                /* the folder of the rings, and their name in it */
    pid_t named;                      /* the process id in that name */
    char comm[17];
};

/** Returns 0, or -errno with a line that says what to do. */
int traced_process_find(struct traced_process *t, pid_t pid, struct error *e);
void traced_process_release(struct traced_process *t);
/** Switches its tracing. *was (may be NULL): how it was before. Returns 0, or -errno with a line. */
int traced_process_switch(const struct traced_process *t, bool on, bool *was, struct error *e);
/** Returns whether the process of this ledger has rings. */
bool traced_process_has_rings(const struct ledger_entry *entry);

#endif
