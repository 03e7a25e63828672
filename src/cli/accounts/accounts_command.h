/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_ACCOUNTS_COMMAND_H
#define CLI_ACCOUNTS_COMMAND_H

/*
 * Commands that show accounts, such as `allium tags`. They share their options and the processing of what was
 * read.
 */

#include "cli/accounts/accounts_show.h"
#include "cli/screen_options.h"
#include "cli/source.h"

/** Lines for the table of options, with the sort orders of the command. */
#define ACCOUNTS_OPTIONS(orders)                                                                             \
    {"by", 0, "GROUP", "group rows by site (default), function, file, directory, module, class or process"}, \
        {"sort", 0, "ORDER", orders},                                                                        \
        {"where", 0, "QUERY", "show only matching sites: 'file:src/* live>1M', see allium-query(7)"},        \
        {"fail-if", 0, "CONDITION",                                                                          \
         "with two sources: exit with 4 if it grew by more: live+10%, objects+100; may be repeated",         \
         .many = true},                                                                                      \
        {"top", 0, "N", "print N rows (20, with --json all); 0: all"}, SCREEN_OPTIONS,                       \
        {"json", 0, NULL, "print JSON, see allium-json(5)"},                                                 \
        INTERVALS_OPTIONS("read it at each INTERVAL, and print the changes per second",                      \
                          "stop after N intervals"),                                                         \
        {"allocinfo", 0, NULL, "print all sites in the format of /proc/allocinfo"},                          \
        {"openmetrics", 0, NULL, "print the top sites of each figure as OpenMetrics, for Prometheus"},       \
        {"no-pager", 0, NULL, "print long output directly, not through $PAGER"}, SOURCE_PID_OPTION

/** Runs the command. Returns the exit code. */
int accounts_command(const struct accounts_kind *kind, int argc, char **argv);

#endif
