/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_DEBUGINFOD_H
#define CLI_DEBUGINFOD_H

/*
 * Debug files from the servers that DEBUGINFOD_URLS names, the same for every command that gives names to addresses:
 * how long it waits for them, and what it says when they did not come.
 *
 * Runs in: the tool. Owns: what is returned, as long as the command runs: its budget is one.
 */

#include "cli/command.h"
#include "symbol/debuginfod_servers.h"

/* An entry for the command's table of options; command_parse() does the rest. */
#define DEBUGINFOD_OPTION                                                                                    \
    {                                                                                                        \
        DEBUGINFOD_OPTION_NAME, 0, "DURATION",                                                               \
            "total time to wait for debug files from DEBUGINFOD_URLS (2s); wait: no limit; off", false       \
    }
#define DEBUGINFOD_OPTION_NAME "debuginfod"

/** Takes the option's value, or, if it is NULL, that of ALLIUM_DEBUGINFOD. -1: fine; else an exit code. */
int debuginfod_choose(const struct command *c, const char *value);

/** NULL: nobody is asked. */
struct symbol_servers *debuginfod_servers(void);

/** One line on stderr, once, if names would be better had all files come. */
void debuginfod_tell(void);

#endif
