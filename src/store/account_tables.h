/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef STORE_ACCOUNT_TABLES_H
#define STORE_ACCOUNT_TABLES_H

/*
 * Exact accounts in a recording: tables of rows (table_rows.h) for processes, for their places, and for the
 * counters of places over time. The counters of a place are stored when they differ from the last ones
 * stored. So the state at a time is, for each place, the last row stored before.
 *
 * Runs in: the tool. Threads: one at a time. Owns: nothing of the recording.
 */

#include "model/accounts/accounts.h"
#include "store/recording.h"

/** Stores accounts of one kind ("tags") in a recording. */
struct accounts_keeper;

/** Never returns NULL. The recording and `kind` must outlive the result. */
struct accounts_keeper *accounts_keeper_new(struct recording *r, const char *kind);
void accounts_keeper_free(struct accounts_keeper *k);
/** Stores a reading of one process. A place that was in the last reading and is not in this one counts as 0
 * from now on. */
int accounts_keeper_put(struct accounts_keeper *k, const struct accounts *a, const struct alloc_texts *texts,
                        struct error *e);

/**
 * Reads the accounts of that kind at the time `at_ns` (CLOCK_REALTIME) or, when it is NULL, at the end.
 * Nothing in the file is trusted: inconsistent rows are left out and counted. Returns -ENODATA if there are
 * none, else as profile_load.h. A process counts as alive if it ran at that time.
 */
int recording_load_accounts(struct accounts *a, struct alloc_texts *texts, const char *path, const char *kind,
                            const uint64_t *at_ns, struct error *e);

#endif
