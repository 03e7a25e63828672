/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_TRACE_FILTER_H
#define CLI_TRACE_FILTER_H

/* `allium trace --where QUERY`, and the checks of --clock that the tool makes. */

#include "base/buf.h"
#include "cli/command.h"

/**
 * Checks --clock, and sets *clock to "counter", "none" or "every:N"; NULL: all events have times. Returns -1, or the
 * exit code after a line.
 */
int trace_filter_parse_clock(const struct command *c, const struct arguments *a, const char **clock);
/**
 * Checks --where (`clock`: as above), and sets *where to the query; NULL: there is none. Returns -1, or the exit code
 * after a line.
 */
int trace_filter_parse(const struct command *c, const struct arguments *a, const char *clock,
                       const char **where);
/** Appends what the agent may judge itself of the query, which is checked, to its options. NULL: nothing. */
void trace_filter_add_options(const char *where, struct buf *out);

#endif
