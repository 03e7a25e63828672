/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef STORE_ACCOUNT_TABLES_H
#define STORE_ACCOUNT_TABLES_H

/*
 * Exact accounts in a recording: tables of rows (table_rows.h) of processes, of their places, and of the places'
 * counters over time. Counters are put when they differ from what was put last: so a moment is what was put last of
 * each place until then.
 *
 * Runs in: the tool. Threads: one at a time. Owns: nothing of the recording.
 */

#include "model/accounts/accounts.h"
#include "store/recording.h"

/** Keeps accounts of one kind ("tags") in a recording. */
struct accounts_keeper;

/** Never NULL. The recording outlives it; so does `kind`. */
struct accounts_keeper *accounts_keeper_new(struct recording *r, const char *kind);
void accounts_keeper_free(struct accounts_keeper *k);
/** Puts a reading of one process. A place that was in the last one and is not in this has nothing from now on. */
int accounts_keeper_put(struct accounts_keeper *k, const struct accounts *a, const struct alloc_texts *texts,
                        struct error *e);

/**
 * Those of that kind, at the time `at_ns` (CLOCK_REALTIME) or, when it is NULL, at the end. Nothing in the file is
 * trusted: what makes no sense is left out, and counted. -ENODATA: there are none; else as profile_load.h. A process is
 * alive if it ran then.
 */
int recording_load_accounts(struct accounts *a, struct alloc_texts *texts, const char *path, const char *kind,
                            const uint64_t *at_ns, struct error *e);

#endif
