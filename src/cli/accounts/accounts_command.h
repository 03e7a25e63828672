/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_ACCOUNTS_COMMAND_H
#define CLI_ACCOUNTS_COMMAND_H

/*
 * A command that shows accounts: `allium tags`, and others that have them. What such commands have in common is
 * their options, and all that is done with what was read.
 *
 * Runs in: the tool.
 */

#include "cli/accounts/accounts_show.h"

/** Lines of its table of options, with the orders that there are. */
#define ACCOUNTS_OPTIONS(orders)                                                                             \
    {"by", 0, "GROUP",                                                                                       \
     "group rows by place (default), function, file, directory, module, class or process"},                  \
        {"sort", 0, "ORDER", orders},                                                                        \
        {"where", 0, "QUERY", "show only matching places: 'file:src/* live>1M', see allium-query(7)"},       \
        {"top", 0, "N", "print N rows (12; with --json all, with --openmetrics 20); 0: all"},                \
        {"json", 0, NULL, "print JSON, see allium-json(5)"}, INTERVALS_OPTIONS,                              \
        {"allocinfo", 0, NULL, "print all places in the format of /proc/allocinfo"},                         \
        {"openmetrics", 0, NULL, "print the top places of each figure as OpenMetrics, for Prometheus"},      \
    {                                                                                                        \
        "no-pager", 0, NULL, "print long output directly, not through $PAGER"                                \
    }

/** Does all of it; returns the exit code. */
int accounts_command(const struct accounts_kind *kind, int argc, char **argv);

#endif
