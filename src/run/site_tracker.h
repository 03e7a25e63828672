/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUN_SITE_TRACKER_H
#define RUN_SITE_TRACKER_H

/*
 * Stores the accounts of call sites of the ledgers that are followed, at each snapshot and at the end of a
 * process.
 *
 * Runs in: the tool. Threads: one. Owns: the accounts that were stored last, until site_tracker_free().
 */

#include <stdbool.h>
#include <sys/types.h>

#include "model/profile/wrappers.h"
#include "store/recording.h"
#include "symbol/symbol.h"

struct site_tracker;

/**
 * Returns NULL if `wrappers` is NULL: no accounts are to be stored. All arguments must outlive the tracker.
 */
struct site_tracker *site_tracker_new(struct recording *recording, struct symbols *symbols,
                                      const struct wrappers *wrappers);
void site_tracker_free(struct site_tracker *s);
/** Stores the accounts in the ledger `fd` of process `pid`; does nothing if it has none. Returns 0, or the
 * recording's error. */
int site_tracker_keep(struct site_tracker *s, int fd, pid_t pid, bool alive, const char *root,
                      struct error *e);

#endif
