/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_SYS_COMMAND_H
#define CLI_SYS_COMMAND_H

/* A tool of `allium sys` as a command: its options, and its --help. */

#include "cli/sys/sys_options.h"

/** Fills r->options, r->name and r->as_command from r->tool. */
void sys_command_make(struct sys_request *r);
/** Frees the texts among them. */
void sys_command_release(struct sys_request *r);

/** Returns bits of the columns that are histograms. */
uint64_t sys_tool_histograms(const struct sys_tool *tool);
/** Returns whether the tool has --lines. */
bool sys_tool_names_kernel_code(const struct sys_tool *tool);
bool sys_tool_takes_user_stacks(const struct sys_tool *tool);

#endif
