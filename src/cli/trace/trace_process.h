/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_TRACE_PROCESS_H
#define CLI_TRACE_PROCESS_H

/*
 * `allium trace PID`: a process that runs already.
 *
 * Runs in: the tool.
 */

#include "cli/command.h"
#include "run/record.h"

/** Called with the parsed arguments, the first of which is a PID. Returns the exit code. */
int trace_process_run(const struct command *c, const struct arguments *a, const struct record_options *o);

#endif
