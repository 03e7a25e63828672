/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_SOURCE_H
#define CLI_SOURCE_H

/*
 * SOURCE, the same for every command: a recording, FILE@TIME (a moment within it, counted from its beginning), the PID
 * of a process that has a ledger, or nothing: the newest recording in this directory, as of which @TIME is a moment,
 * too.
 *
 * Runs in: the tool.
 */

#include <sys/types.h>

#include "base/error.h"
#include "model/profile/profile.h"

struct source {
    struct profile *profile; /* with names */
    char *label;             /* for the heading */
    char *path;              /* of the recording; NULL: the source is a process */
};

/** 0, or -errno with a line that says what to do. `text` may be NULL. */
int source_open(struct source *s, const char *text, struct error *e);
/** The same where nobody will ask for points in time and lifetimes: of a long recording much faster. */
int source_open_figures(struct source *s, const char *text, struct error *e);
void source_release(struct source *s);

/**
 * For a command that reads the file itself: the path, which the caller frees, if the source is a recording as a whole;
 * else *path is NULL, and source_open() is the way. 0, or -errno with a line.
 */
int source_file(const char *text, char **path, struct error *e);

/**
 * Takes FILE@TIME apart: the path, which the caller frees, and the time, a part of `text`. Of @TIME alone it is the
 * newest recording in this directory. 0, or -errno with a line.
 */
int source_moment(const char *text, char **path, const char **time, struct error *e);

/** What a source is, by its form and by what files there are; NULL is a file. */
enum source_kind { SOURCE_FILE, SOURCE_MOMENT, SOURCE_PROCESS };
enum source_kind source_kind(const char *text);
/** The process that a number stands for; 0: no process can have it, or it is none. */
pid_t source_pid(const char *text);
/** The time (CLOCK_REALTIME) of FILE@TIME, of which these are the parts. 0, or -errno with a line. */
int source_when(const char *path, const char *time, uint64_t *at_ns, struct error *e);

/** "tags" or "sites", if it has exact accounts of these, and no heap profile; else NULL. */
const char *source_accounts_alone(const char *text);
/** The ledger of a process as a profile of one image, with names; `*path` is not set on failure. */
int source_read_ledger(struct profile **p, int pid, struct error *e);

#endif
