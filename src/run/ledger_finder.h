/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUN_LEDGER_FINDER_H
#define RUN_LEDGER_FINDER_H

/*
 * Finds new ledgers for a recorder. A new file in the recorder's own directory is an event (inotify). The directories
 * of the same name in the other places of ledgers, of all users, and /proc (stray_search.h) are searched from time to
 * time.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collect/ledger/ledger_dir.h"
#include "collect/ledger/ledger_scan.h"

struct ledger_finder;

/** Never returns NULL. `dir`: of the recorder; it must outlive the finder. */
struct ledger_finder *ledger_finder_new(const char *dir);
void ledger_finder_free(struct ledger_finder *f);
/**
 * Returns a descriptor that becomes readable when a file has appeared in the directory; -1: there is none, or the
 * caller must not wait for it before ledger_finder_due().
 */
int ledger_finder_fd(const struct ledger_finder *f);
/**
 * Searches, if that is due at `now` (CLOCK_MONOTONIC), or in any case if this is the `last` search, and gets new
 * ledgers: first those in directories, then strays. Of those in directories, leaves out the `known` ones. Returns false
 * if no search was due. The caller releases *found, and then calls ledger_finder_report().
 */
bool ledger_finder_search(struct ledger_finder *f, uint64_t now, bool last, ledger_known_fn known,
                          const void *arg, struct ledger_strays *found);
/** Says what has become of the found ledgers: how many of them are followed now, and whether a process still makes
 * one. */
void ledger_finder_report(struct ledger_finder *f, uint64_t now, size_t followed, bool incomplete);
/** Returns when the next search is due, apart from events. */
uint64_t ledger_finder_due(struct ledger_finder *f, uint64_t now);

#endif
