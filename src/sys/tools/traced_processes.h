/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_TRACED_PROCESSES_H
#define SYS_TRACED_PROCESSES_H

/*
 * Whose events the programs of kernel_events.h write: a set of processes in their memory, to which they add each
 * process that one of them forks.
 *
 * Runs in: the tool, as root. Threads: one. Owns: nothing.
 */

#include <sys/types.h>

#include "base/error.h"
#include "sys/session.h"

/** Adds the first process that this one forks from now on. Returns 0, or -errno with a line. */
int traced_processes_await(struct sys_session *s, struct error *e);
/**
 * Adds a process that runs, and those that it has started and that still run, but for this one. Returns 0, or -errno
 * with a line; -ESRCH: it has ended; -EOPNOTSUPP: this process does not see the numbers that the kernel uses.
 */
int traced_processes_add(struct sys_session *s, pid_t pid, struct error *e);

#endif
