/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_SOURCE_H
#define CLI_SOURCE_H

/*
 * SOURCE, the same for every command: a recording; the folder of a trace; FILE@TIME or DIR@TIME (a moment in it,
 * counted from its beginning); DIR@FROM..TO (a span of a trace); the PID of a process with a ledger; or nothing: the
 * newest recording in this directory.
 * @TIME alone is a moment in that recording.
 *
 * Runs in: the tool.
 */

#include <sys/types.h>

#include "base/error.h"
#include "cli/command.h"
#include "model/profile/profile.h"

/* The option -p PID of commands with one SOURCE or PID. */
#define SOURCE_PID_OPTION                                                                                    \
    {                                                                                                        \
        "pid", 'p', "PID", "use the process PID, as the first argument does", false, true                    \
    }

struct source {
    struct profile *profile; /* with names */
    char *label;             /* for the heading */
    char *path;              /* of the recording; NULL: the source is a process */
};

/** Returns 0, or -errno with a line that says what to do. `text` may be NULL. */
int source_open(struct source *s, const char *text, struct error *e);
/** Like source_open(); a recording as a whole comes with the sums of its stored moments, too. */
int source_open_moments(struct source *s, const char *text, struct error *e);
/** Like source_open(), for callers that do not need points in time and lifetimes: much faster for a long
 * recording. */
int source_open_figures(struct source *s, const char *text, struct error *e);
void source_release(struct source *s);

/**
 * For a command that reads the file itself: returns the path, which the caller frees, if the source is a
 * whole recording; else *path is NULL, and the command must use source_open(). Returns 0, or -errno with a
 * line.
 */
int source_file(const char *text, char **path, struct error *e);

/**
 * Splits FILE@TIME into the path, which the caller frees, and the time, a part of `text`. For @TIME alone the
 * path is the newest recording in this directory. Returns 0, or -errno with a line.
 */
int source_moment(const char *text, char **path, const char **time, struct error *e);

/**
 * Returns the kind of a source from its form: a number is a process (./4711 is a file). Text with "@" is a moment,
 * unless a file has that name. NULL is a file.
 */
enum source_kind { SOURCE_FILE, SOURCE_MOMENT, SOURCE_PROCESS };
enum source_kind source_kind(const char *text);
/** Returns the process with that number; 0: it is not a valid pid. */
pid_t source_pid(const char *text);
/**
 * Stores the process id of `text` in *pid. Returns -1; or EXIT_USAGE after an error line, which also lists the
 * processes named `text`.
 */
int source_parse_pid(const struct command *c, const char *text, pid_t *pid);
/** Prints the error of opening a source. Returns EXIT_USAGE for -EINVAL (the user wrote an invalid source), else
 * EXIT_FAILED. */
int source_fail(int bad, const struct error *e);
/** Appends to the error the ids of running processes named `text`: the user may have meant one of them. */
void source_suggest_pids(const char *text, struct error *e);
/** Computes the time (CLOCK_REALTIME) of FILE@TIME from its two parts. Returns 0, or -errno with a line. */
int source_when(const char *path, const char *time, uint64_t *at_ns, struct error *e);

/** Returns "tags" or "sites" if the recording has exact accounts of these and no heap profile; else NULL. */
const char *source_accounts_alone(const char *text);
/** Returns the ledger of a process as a profile of one image, with names. `*path` is not set on failure. */
int source_read_ledger(struct profile **p, int pid, struct error *e);

#endif
