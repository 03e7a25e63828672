/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUN_TRACED_PROCESS_H
#define RUN_TRACED_PROCESS_H

/*
 * A process that writes events, or has written some: its ledger, and its rings, which lie beside.
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
    bool has_rings; /* the rings are there; else liballium.so makes them at the first event */
    pid_t named;    /* the process id in that name */
    char comm[17];
};

/**
 * Finds a process that has rings, or with `later` also one that runs and may make them. Returns 0, or -errno with a
 * line that says what to do.
 */
int traced_process_find(struct traced_process *t, pid_t pid, bool later, struct error *e);
void traced_process_release(struct traced_process *t);

#endif
