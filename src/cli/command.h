/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

/*
 * One command of `allium`: its help, its options, its function. To add one (CONTRIBUTING.md has the details):
 *   1. write cli/commands/cmd_<name>.c with a `const struct command command_<name>`, and list it in cli/meson.build;
 *   2. declare it below, and add it to the table in main.c;
 *   3. write man/allium-<name>.1.scd, and list it in man/meson.build and man/allium.1.scd;
 *   4. add the command and its options to completion/allium.bash (tests/checks/docs fails if help, manual and
 *      completion differ), and the command to tests/checks/completion;
 *   5. write tests/cli/<name>.py, and add calls to tests/cli/output_errors.py.
 *
 * Runs in: the tool.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"
#include "view/text/sink.h"

/* Exit codes. A command that ran CMD exits with the code of CMD. */
enum {
    EXIT_DONE = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    EXIT_IMPOSSIBLE = 3, /* not on this machine: the line says what is missing */
    EXIT_CONDITION = 4,  /* a condition of --fail-if is met */
    EXIT_ALLIUM = 125,   /* run: allium itself failed or refused */
    EXIT_CANNOT_RUN = 126,
    EXIT_NOT_FOUND = 127,
};

struct option_doc {
    const char *name;  /* long, without dashes */
    char letter;       /* 0: none */
    const char *value; /* its value in help: SIZE, FILE ...; NULL: it takes none */
    const char *doc;   /* a verb phrase, half a line */
    bool many;         /* may be given several times, see struct arguments */
    bool is_pid;       /* its value is a process id, which command_parse() puts before the other arguments */
};

struct command {
    const char *name;
    const char *usage;                 /* after "allium NAME "; a line for each form */
    const char *summary;               /* a verb phrase, half a line */
    const char *source;                /* the default of SOURCE, in words; NULL: the newest recording here */
    const char *const *examples;       /* pairs of a command and a verb phrase; NULL at the end */
    const struct option_doc *options;  /* ends with a name of NULL; --help is added */
    void (*more)(void);                /* prints more help after the summary; NULL: none */
    bool own_columns;                  /* it reads --columns itself */
    int (*run)(int argc, char **argv); /* argv[0] is the command's name; returns the exit code */
};

extern const struct command command_trace, command_events, command_attach, command_detach, command_run,
    command_env, command_ps, command_snapshot, command_report, command_watch, command_diff, command_who,
    command_frees, command_export, command_sql, command_set, command_sys, command_sites, command_tags,
    command_doctor, command_sys_allocinfo, command_sys_frag, command_sys_record, command_sys_import,
    command_sys_advise, command_bench;

#define ARGUMENTS_MANY 16 /* times that an option with `many` may be given */

/** The values of the options of one call, in the order of the table. */
struct arguments {
    const char *value[56]; /* NULL: not given; "" or the value: given */
    /* all values of the options with `many`, of which a command has at most two, and the names of these options */
    const char *many[2 * ARGUMENTS_MANY], *many_of[2 * ARGUMENTS_MANY];
    int n_many;
    char **rest; /* the arguments that are no options; before them the value of an option with is_pid */
    int n_rest;
};

/**
 * Parses options (before the first other word if `stop_at_word`). Returns -1 to go on, or an exit code: 0 after --help,
 * EXIT_USAGE after a line on stderr.
 */
int command_parse(const struct command *c, int argc, char **argv, bool stop_at_word, struct arguments *a);
/** Returns the value of an option by name; NULL: it was not given. */
const char *command_value(const struct command *c, const struct arguments *a, const char *name);

/** Prints "allium: " and the line on stderr; returns code. */
int command_fail(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/**
 * The end of what was written to stdout: `code`, or EXIT_FAILED after a line when it could not be written. A reader
 * that wants no more (a closed pipe) is none of our failures.
 */
int command_written(struct sink *out, int code);
/** Prints each line of the notes (view/text/notes.h) on stderr, and releases them. */
void command_notes(struct buf *notes);
/**
 * Until the matching end, usage errors are kept, to be printed together in one line. The end returns EXIT_USAGE if it
 * printed any, otherwise `code`. Pairs may be nested: the outermost one prints.
 */
void command_gather_begin(void);
int command_gather_end(const struct command *c, int code);
/** Prints a usage error of this command, and how to get help. Returns EXIT_USAGE. */
int command_misuse(const struct command *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
