/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_SYS_REFUSALS_H
#define CLI_SYS_REFUSALS_H

/*
 * Options of `allium sys NAME` that would do nothing: beside others, or without them. Each is refused, in one line.
 *
 * Runs in: the tool.
 */

#include "cli/sys/sys_options.h"

/** After all of them have been read into `r`. -1: each does something; else an exit code, after a line on stderr. */
int sys_refusals_check(const struct sys_request *r, const struct arguments *a);

#endif
