/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_TRACE_FUNCTIONS_H
#define CLI_TRACE_FUNCTIONS_H

/* --function of `allium trace`: the functions and static probes whose calls are events. */

#include "cli/command.h"
#include "sys/probe/probe_list.h"

/**
 * Finds the function or probe of each --function in the target. *out: the list, which the caller frees; or NULL.
 * Returns -1, or an exit code after a line.
 */
int trace_functions_parse(const struct arguments *a, const struct probe_target *target,
                          struct probe_list **out);
/** Prints what the probes cost: before the program starts. */
void trace_functions_print_price(const char *line);

#endif
