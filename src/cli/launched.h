/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_LAUNCHED_H
#define CLI_LAUNCHED_H

/* Commands that start a program and record it: a look at the program before the start, and the exit code after it. */

#include <stdbool.h>

#include "run/record.h"

/**
 * Examines the program. Returns -1, or the exit code after a line: there is no such program, or it cannot be observed.
 * A warning about an allocator of its own is printed unless `quiet`; `*own_allocator` receives whether it has one.
 * `*path`: the file that runs, which is the interpreter of a script; the caller frees it.
 */
int launched_check(const char *cmd, bool quiet, bool *own_allocator, char **path);
/** Returns the exit code of a command whose program had this end. */
int launched_exit_code(const struct record_result *r);

#endif
