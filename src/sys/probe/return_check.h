/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_RETURN_CHECK_H
#define SYS_RETURN_CHECK_H

/*
 * Whether probes on returns harm no process. Since Linux 6.11 the return of a function with such a probe makes a system
 * call, uretprobe(), of which the program knows nothing. Its seccomp filter does not allow the call, and ends it. Since
 * 6.14 (and 6.13.3, 6.12.14) the kernel does not ask the filter.
 *
 * Runs in: the tool, as root. Threads: one.
 */

#include "base/error.h"

#define RETURN_CHECK_URETPROBE 335 /* the system call's number on x86-64; headers do not have it yet */

/**
 * Tries it: a child that has a filter against this system call alone returns from a function with a probe, and ends.
 * Returns 1: it was not harmed; 0: it was ended; -errno: it cannot be tried.
 */
int return_check_try(unsigned forbidden_call);
/** Tries it where the kernel's version does not tell. Returns 0, or -ENOTSUP with a line. `tool`: "sys memleak". */
int return_check(const char *tool, struct error *e);

#endif
