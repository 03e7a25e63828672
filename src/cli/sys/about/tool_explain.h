/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_TOOL_EXPLAIN_H
#define CLI_TOOL_EXPLAIN_H

/*
 * `allium sys NAME --explain`: half a page on a tool: the questions that it answers, the places of the kernel that it
 * hooks, the cost of an event, and what it cannot show on this machine.
 */

#include "cli/sys/sys_options.h"

/** Reads the options beside --explain into `r`. Returns -1 to go on, or an exit code after a line on stderr. */
int tool_explain_parse(struct sys_request *r, const struct arguments *a);
/** Prints the text. Returns the exit code. */
int tool_explain(const struct sys_request *r);

#endif
