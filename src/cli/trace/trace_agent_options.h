/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_TRACE_AGENT_OPTIONS_H
#define CLI_TRACE_AGENT_OPTIONS_H

/*
 * The options of `trace` that the agent obeys.
 *
 * Runs in: the tool.
 */

#include "base/buf.h"
#include "cli/command.h"

/**
 * Appends these options, in the form that ALLIUM_SITES has, to `out`. --clock was checked (cli/trace/trace_filter.h).
 * Returns -1, or the exit code after a line.
 */
int trace_agent_options_add(const struct command *c, const struct arguments *a, struct buf *out);

#endif
