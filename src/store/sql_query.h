/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef STORE_SQL_QUERY_H
#define STORE_SQL_QUERY_H

/*
 * Runs an SQL query on a recording, or on a profile, which is stored as a recording first. Both the file and
 * the query may come from a stranger: neither can change anything, open another file, or take more memory
 * than allowed.
 *
 * Runs in: the tool.
 * Threads: one query at a time in a process (SQLite's memory limit belongs to the process).
 * Owns: nothing between two calls.
 *
 * How this is ensured: the file is opened read-only as profile_load.h says, and refused if its schema is not
 * exactly ours, so that no view, trigger or index of a stranger is evaluated. An authorizer allows SELECT,
 * columns, functions except load_extension(), and the pragmas that describe tables. No database can be
 * attached. Sorting and temporary tables stay in memory. Texts and blobs are at most 1 MiB.
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
    const volatile sig_atomic_t *stop; /* a signal handler sets it to stop the query; NULL: never */
    int64_t memory_bytes;              /* limit of SQLite's memory; 0: STORE_QUERY_MEMORY_BYTES */
    /*
     * Gets up to STORE_QUERY_BATCH_ROWS rows at a time; they are not stored. It is called at least once if
     * the query is valid. `more`: other rows may follow. A result other than 0 ends the query, and the
     * function returns it.
     */
    int (*take)(void *arg, const struct sql_result *rows, bool more);
    void *arg;
    size_t wrong_at; /* output: position of the error in `sql`, in bytes; STORE_QUERY_NOWHERE: not known */
};

/**
 * Returns 0, the result of take(), or -errno with a line: -EINVAL not SQL, unknown names, or an impossible
 * value; -EPERM more than a query; -EINTR stopped; -ENOMEM more memory than allowed; else as profile_load.h.
 */
int store_query_file(struct store_query *q, const char *path, struct error *e);
/**
 * Like store_query_file(), for a profile: a recording of it is made in $TMPDIR (/tmp), and removed before the
 * query runs. Its table `mapping` has the profile's mappings for each image; snapshots are not in it.
 */
int store_query_profile(struct store_query *q, const struct profile *p, struct error *e);

#endif
