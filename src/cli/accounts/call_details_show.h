/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_CALL_DETAILS_SHOW_H
#define CLI_CALL_DETAILS_SHOW_H

/*
 * `allium tags PID --stacks` and `--latency`, and `allium sites PID --stacks`: shows the details of single
 * calls that rules of `allium set` recorded.
 */

#include "cli/command.h"
#include "model/profile/wrappers.h"

/**
 * If one of the options is given, runs the command and returns the exit code. -1: none is given. `sites`:
 * shows call sites, with these wrappers; NULL: shows tags.
 */
int call_details_command(const struct command *c, const struct wrappers *sites, int argc, char **argv);

#endif
