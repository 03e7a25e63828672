/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_TRACE_SUM_H
#define CLI_TRACE_SUM_H

/*
 * `allium trace --sum`: reads its options, runs the command or follows the process, and prints the table.
 *
 * Runs in: the tool. Threads: one. Owns: nothing.
 */

#include "cli/command.h"
#include "model/trace/event_sums.h"
#include "view/text/text.h"

/** Options of `allium trace` that are for --sum. */
#define TRACE_SUM_OPTIONS                                                                                    \
    {"sum", 0, "SUM", "record nothing, and add up EVENT[.FIELD][,by=FIELD...]: malloc.size,by=site"},        \
        {"interval", 0, "INTERVAL", "with --sum, print the table every INTERVAL, too"},                      \
        {"top", 0, "N", "with --sum, print the N largest rows; 0: all (20)"},                                \
        {"histogram", 0, NULL, "with --sum, print below each row how many values each power of two has"},    \
        {"alert", 0, "QUERY", "with --sum, report once a row matches: 'sum>1G for 10s'"},                    \
        {"exec", 0, "COMMAND", "run COMMAND at an alert, see allium-sys(1)"},                                \
    {                                                                                                        \
        "json", 0, NULL, "with --sum, print JSON"                                                            \
    }

/** Called with the arguments of `allium trace --sum`, parsed. Returns the exit code. */
int trace_sum_run(const struct command *command, const struct arguments *a);
/** Returns -1, or the exit code after a line: an option of --sum without it. */
int trace_sum_check_absent(const struct command *command, const struct arguments *a);

/** How a table of sums is written. */
struct trace_sum_view {
    uint32_t top;                /* 0: all */
    bool json, histogram, quiet; /* `quiet`: do not say what events lack */
};
/** Writes it as a text, or as JSON; says which rows were left out, and what has no row. */
void trace_sum_write(const struct trace_sum_view *v, struct event_sums *sums, struct sink *out,
                     const struct text_style *style);

#endif
