/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_TAGS_DETAILS_H
#define CLI_TAGS_DETAILS_H

/*
 * `allium tags PID --stacks` and `--latency`: what `allium set` asked for of single calls.
 *
 * Runs in: the tool.
 */

#include "cli/command.h"

/** Does all of it, if one of the two is among the options: an exit code. -1: neither is. */
int tags_details_command(const struct command *c, int argc, char **argv);

#endif
