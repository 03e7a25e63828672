/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_SCREEN_OPTIONS_H
#define CLI_SCREEN_OPTIONS_H

/*
 * --columns, --wide and --exact: what tables on the screen show. A choice holds for all that the process prints;
 * command_parse() reads it, and terminal_style() has it.
 *
 * Runs in: the tool. Threads: one. Owns: the choice, for the life of the process.
 */

#include "cli/command.h"
#include "view/text/text.h"

/** Their part of a usage line. */
#define SCREEN_USAGE "[--columns LIST] [--wide] [--exact]"
/** Lines for the table of options. */
#define SCREEN_OPTIONS                                                                                       \
    {"columns", 0, "LIST", "show only these columns of tables, by their headings: live,share"},              \
        {"wide", 0, NULL, "shorten nothing, and drop no column"},                                            \
    {                                                                                                        \
        "exact", 0, NULL, "print whole numbers in tables: 2,621 and not 2.62k"                               \
    }

/** Reads the options of a command that has them. Returns -1 to go on, or EXIT_USAGE after a line. */
int screen_options_read(const struct command *c, const struct arguments *a);
/** Puts the choice into the style. */
void screen_options_apply(struct text_style *style);
/** At the end: if --columns has a name that no table had, writes a line, and returns EXIT_USAGE in place of EXIT_DONE.
 * Any other code is returned as it is: that a condition is met, or an error, matters more. */
int screen_options_check(int code);

#endif
