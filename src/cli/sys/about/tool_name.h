/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_TOOL_NAME_H
#define CLI_TOOL_NAME_H

/* The tool that the word after `allium sys` names, also as bcc and bpftrace call theirs. */

#include "sys/tool.h"

/** Returns the tool of this name, also with "-bpfcc" (bcc) or ".bt" (bpftrace) at its end; NULL: there is none. */
const struct sys_tool *tool_name_find(const char *name);
/** Returns whether "BPF Performance Tools" by Brendan Gregg has a tool for memory of this name, without such an end. */
bool tool_name_is_of_book(const char *name);
/** Returns the length of the name without such a suffix. */
size_t tool_name_bytes(const char *name);

#endif
