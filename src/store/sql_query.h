/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef STORE_SQL_QUERY_H
#define STORE_SQL_QUERY_H

/*
 * A question in SQL, asked of a recording, or of a profile, which is put into a recording for that. The file may come
 * from a stranger, and the question, too: neither changes anything, opens another file, or takes more memory than
 * allowed.
 *
 * Runs in: the tool. Threads: one question at a time in a process (SQLite's limit of memory is the process's).
 * Owns: nothing between two calls.
 *
 * What sees to that: the file is opened as profile_load.h says, read-only, and refused if its schema is not ours to the
 * letter, so that no view, trigger or index of a stranger is evaluated; an authorizer lets SELECT, columns and
 * functions pass, but load_extension(), and of the pragmas those that describe tables; no database can be attached;
 * sorting and temporary tables stay in memory; texts and blobs are at most 1 MiB.
 */

#include <signal.h>

#include "base/error.h"
#include "model/profile/profile.h"
#include "model/table/sql_result.h"

#define STORE_QUERY_MEMORY_BYTES (512ll << 20)
#define STORE_QUERY_BATCH_ROWS   1000
#define STORE_QUERY_NOWHERE      SIZE_MAX

struct store_query {
    const char *sql;
    const volatile sig_atomic_t *stop; /* a signal handler sets it, and the question ends; NULL: never */
    int64_t memory_bytes;              /* that SQLite may take; 0: STORE_QUERY_MEMORY_BYTES */
    /* Takes up to STORE_QUERY_BATCH_ROWS rows at a time: none of them is kept. At least one call if the question is
     * sound; `more`: others may follow. Not 0: enough, and what the call returns. */
    int (*take)(void *arg, const struct sql_result *rows, bool more);
    void *arg;
    size_t wrong_at; /* set: where in `sql` it is wrong, in bytes; STORE_QUERY_NOWHERE: not known */
};

/**
 * 0, what take() returned, or -errno with a line: -EINVAL, not SQL, names that are not there, or a value that cannot
 * be; -EPERM, more than a question; -EINTR, stopped; -ENOMEM, more memory than allowed; else as profile_load.h.
 */
int store_query_file(struct store_query *q, const char *path, struct error *e);
/**
 * The same of a profile: a recording of it is made in $TMPDIR (/tmp), and removed before the question is asked. Its
 * table `mapping` has for each image what the profile has; moments are not in it.
 */
int store_query_profile(struct store_query *q, const struct profile *p, struct error *e);

#endif
