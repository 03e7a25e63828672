/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUN_SITE_TRACKER_H
#define RUN_SITE_TRACKER_H

/*
 * Keeps the accounts of call sites of the ledgers that are followed, whenever a moment or the end of one is kept.
 *
 * Runs in: the tool. Threads: one. Owns: what it was told to keep last, until site_tracker_free().
 */

#include <stdbool.h>
#include <sys/types.h>

#include "model/profile/wrappers.h"
#include "store/recording.h"
#include "symbol/symbol.h"

struct site_tracker;

/** NULL: `wrappers` is NULL, and none are to be kept. All that it is given outlives it. */
struct site_tracker *site_tracker_new(struct recording *recording, struct symbols *symbols,
                                      const struct wrappers *wrappers);
void site_tracker_free(struct site_tracker *s);
/** Those in the ledger `fd` of process `pid`; nothing if it has none. 0, or the recording's error. */
int site_tracker_keep(struct site_tracker *s, int fd, pid_t pid, bool alive, const char *root,
                      struct error *e);

#endif
