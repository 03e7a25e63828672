/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_PRIVILEGES_H
#define SYS_PRIVILEGES_H

/*
 * The privileges that loading programs needs, and dropping them afterwards.
 *
 * Runs in: the tool. Threads: one; privileges are dropped for this thread and for programs it starts.
 */

#include <stdbool.h>

#include "base/buf.h"

/**
 * Appends the capabilities that loading needs and this process lacks: "CAP_BPF and CAP_PERFMON"; nothing if
 * none is missing.
 */
void privileges_missing(struct buf *b);
/**
 * Returns whether all of BPF is allowed, including inspection of programs loaded by others (CAP_SYS_ADMIN).
 */
bool privileges_all(void);
/**
 * Keeps the privileges for reading (maps of the programs, names of code of the kernel and of other users'
 * processes), and drops all others for good, also for programs started later. Returns 0 or -errno.
 */
int privileges_drop(void);

#endif
