/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_DEBUGINFOD_H
#define CLI_DEBUGINFOD_H

/*
 * Debug files from the servers in DEBUGINFOD_URLS, for every command that names addresses: how long it waits,
 * and its message when files did not come.
 *
 * Runs in: the tool. Owns: the servers it returns, as long as the command runs: there is one budget of time.
 */

#include "cli/command.h"
#include "symbol/debuginfod_servers.h"

/* A row for the command's table of options; command_parse() does the rest. */
#define DEBUGINFOD_OPTION                                                                                    \
    {                                                                                                        \
        DEBUGINFOD_OPTION_NAME, 0, "DURATION",                                                               \
            "total time to wait for debug files from DEBUGINFOD_URLS (2s); wait: no limit; off", false       \
    }
#define DEBUGINFOD_OPTION_NAME "debuginfod"

/** Reads the option's value or, if it is NULL, that of ALLIUM_DEBUGINFOD. Returns -1: fine; else an exit
 * code. */
int debuginfod_choose(const struct command *c, const char *value);

/** Returns NULL if no server is asked. */
struct symbol_servers *debuginfod_servers(void);

/** Prints one line on stderr, once, if missing files would have given better names. */
void debuginfod_report(void);

#endif
