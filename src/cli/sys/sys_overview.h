/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_SYS_OVERVIEW_H
#define CLI_SYS_OVERVIEW_H

/*
 * `allium sys` without a tool: the machine's memory on one screen, once or repeatedly, and the mappings of
 * one process. No BPF.
 */

#include "cli/command.h"
#include "cli/screen_options.h"

/* Rows for the table of options. */
#define SYS_OVERVIEW_OPTIONS                                                                                 \
    {"pid", 'p', "PID", "show each mapping of one process"},                                                 \
        {"interval", 0, "INTERVAL", "print a screen at each INTERVAL, until interrupted"},                   \
        {"count", 0, "N", "stop after N intervals"},                                                         \
        {"duration", 0, "DURATION", "stop after DURATION; without --interval: take rates over it (1s)"},     \
        {"sort", 0, "ORDER",                                                                                 \
         "sort processes by memory (RSS and swap), rss, swap, anon, file, shmem, faults"},                   \
        {"top", 0, "N", "print N rows of each list (6; 20 mappings); 0: all"},                               \
        {"all", 0, NULL, "on a terminal, print everything, not only what fits it"},                          \
        {"pss", 0, NULL, "also print the proportional set size of listed processes"}, SCREEN_OPTIONS,        \
        {"json", 0, NULL, "print JSON, one object a line, see allium-json(5)"},                              \
    {                                                                                                        \
        "no-pager", 0, NULL, "print long output directly, not through $PAGER"                                \
    }

/** Runs the command with the options. Returns the exit code, after a line on stderr when something failed. */
int sys_overview(const struct command *c, const struct arguments *a);

#endif
