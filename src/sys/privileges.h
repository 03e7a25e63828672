/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_PRIVILEGES_H
#define SYS_PRIVILEGES_H

/*
 * What it takes to load programs into the kernel, and what is given up once they are loaded.
 *
 * Runs in: the tool. Threads: one; what is dropped is dropped for this thread and what it starts.
 */

#include <stdbool.h>

#include "base/buf.h"

/**
 * Appends the capabilities that loading takes and this process has not: "CAP_BPF and CAP_PERFMON"; nothing: it has all.
 */
void privileges_missing(struct buf *b);
/** Is anything allowed that has to do with BPF, also looking at what others have loaded (CAP_SYS_ADMIN)? */
bool privileges_all(void);
/**
 * Keeps what reading takes (the maps of the programs, names of code of other users' processes and of the kernel), drops
 * all else for good, also for programs that are started later. 0 or -errno.
 */
int privileges_drop(void);

#endif
