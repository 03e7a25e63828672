/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUN_TAG_TRACKER_H
#define RUN_TAG_TRACKER_H

/*
 * Follows the ledgers of tags of a recorder, besides those of the agent (ledger_tracker.h). Stores their
 * accounts in the recording while their processes live, and when they have ended; then the ledgers are
 * removed.
 *
 * Snapshots are taken every TAGS_FIRST_NS at first; the interval doubles each time that TAGS_TOGETHER
 * snapshots were stored. So a recording holds some 64 snapshots for each doubling of its length, and a time t
 * after its beginning is at most t / 32 away from a snapshot. If reading takes long, the interval is at least
 * 25 times the duration of the last reading.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "collect/ledger/ledger_dir.h"
#include "store/recording.h"
#include "symbol/symbol.h"

struct tag_tracker;

/** Never returns NULL. The arguments belong to the caller and must outlive the tracker. */
struct tag_tracker *tag_tracker_new(struct recording *recording, struct symbols *symbols);
void tag_tracker_free(struct tag_tracker *f);
/** Returns whether it follows the ledger of this image. */
bool tag_tracker_knows(const struct tag_tracker *f, uint64_t image_id);
/** Adds a ledger, unless it is known already. The tracker takes over the parts of the entry that it needs. */
void tag_tracker_take(struct tag_tracker *f, struct ledger_entry *e);
/**
 * Stores the accounts in the agent's ledger `fd` of process `pid`, at a snapshot or at its end; does nothing
 * if it has none.
 */
int tag_tracker_keep(struct tag_tracker *f, int fd, pid_t pid, bool alive, const char *root, struct error *e);
/** Stores what is due at `now` (CLOCK_MONOTONIC); with `last`, everything. Returns 0, or the recording's
 * error. */
int tag_tracker_step(struct tag_tracker *f, uint64_t now, bool last, struct error *e);
/** Returns when the next step is due; UINT64_MAX: none is. */
uint64_t tag_tracker_due(const struct tag_tracker *f);
/** Called when the recording was committed: ledgers of ended processes are removed. */
void tag_tracker_committed(struct tag_tracker *f);

#endif
