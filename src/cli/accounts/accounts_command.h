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
    {"by", 0, "GROUP", "place (default), function, file, directory, module, class or process"},              \
        {"sort", 0, "ORDER", orders},                                                                        \
        {"where", 0, "QUERY", "only what fits: 'file:src/* live>1M', see allium-query(7)"},                  \
        {"top", 0, "N", "so many rows (12; of JSON, all; of OpenMetrics, 20); 0: all"},                      \
        {"json", 0, NULL, "as JSON, see allium-json(5)"}, INTERVALS_OPTIONS,                                 \
        {"allocinfo", 0, NULL, "every place, in the format of the kernel's /proc/allocinfo"},                \
        {"openmetrics", 0, NULL, "the leading places of each figure, for Prometheus and others"},            \
    {                                                                                                        \
        "no-pager", 0, NULL, "print a long screen at once, not through $PAGER"                               \
    }

/** Does all of it; returns the exit code. */
int accounts_command(const struct accounts_kind *kind, int argc, char **argv);

#endif
