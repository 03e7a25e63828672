/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_CALL_DETAILS_SHOW_H
#define CLI_CALL_DETAILS_SHOW_H

/*
 * `allium tags PID --stacks` and `--latency`, and `allium sites PID --stacks`: what `allium set` asked for of single
 * calls.
 *
 * Runs in: the tool.
 */

#include "cli/command.h"
#include "model/profile/wrappers.h"

/**
 * Does all of it, if one of the options is given: an exit code. -1: none is. `sites`: of call sites, with these
 * wrappers; NULL: of tags.
 */
int call_details_command(const struct command *c, const struct wrappers *sites, int argc, char **argv);

#endif
