/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_SYS_OVERVIEW_H
#define CLI_SYS_OVERVIEW_H

/*
 * Bare `allium sys`: the machine's memory on one screen, once or again and again, and one process's mappings. No BPF.
 *
 * Runs in: the tool. Threads: one at a time.
 */

#include "cli/command.h"

/* Rows of an option table. */
#define SYS_OVERVIEW_OPTIONS                                                                                 \
    {"pid", 'p', "PID", "each mapping of one process"},                                                      \
        {"interval", 0, "TIME", "a screen every so often, 1s as may be, until interrupted"},                 \
        {"duration", 0, "TIME", "so long; without --interval: rates are of that time (1s)"},                 \
        {"sort", 0, "ORDER", "processes by memory (RSS and swap), rss, swap, anon, file, shmem or faults"},  \
        {"top", 0, "N", "so many rows of each list (6; of mappings 20); 0: all"},                            \
        {"pss", 0, NULL, "also the proportional set size of the processes that are listed"},                 \
        {"json", 0, NULL, "as JSON, an object a line, see allium-json(5)"},                                  \
    {                                                                                                        \
        "no-pager", 0, NULL, "print a long screen at once, not through $PAGER"                               \
    }

/** Does what the options say. Returns the exit code, after a line on stderr when something failed. */
int sys_overview(const struct command *c, const struct arguments *a);

#endif
