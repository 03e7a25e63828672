/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_TOOL_LIST_H
#define CLI_TOOL_LIST_H

/* `allium sys --list`: the tools, and the attach method of each that works on this machine. */

#include "cli/command.h"

/** Runs `allium sys --list` with the options. Returns the exit code, after a line on stderr when something failed. */
int tool_list(const struct command *c, const struct arguments *a);

#endif
