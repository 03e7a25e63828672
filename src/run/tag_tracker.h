/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUN_TAG_TRACKER_H
#define RUN_TAG_TRACKER_H

/*
 * Follows the ledgers of tags of a recorder, beside those of the agent (ledger_tracker.h): keeps their accounts in the
 * recording while their processes live, and when they have ended; then they are removed.
 *
 * How often: every TAGS_FIRST_NS at first, then half as often each time that TAGS_TOGETHER moments were kept. So a
 * recording holds some 64 moments for each doubling of its length, and of the time t after its beginning the moment
 * kept is at most t / 32 away; but where there is so much to read that it takes long, a moment is kept at most every 25
 * times what the last one took.
 *
 * Runs in: the tool. Threads: one. Owns: descriptors of ledgers, until tag_tracker_free().
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "collect/ledger/ledger_dir.h"
#include "store/recording.h"
#include "symbol/symbol.h"

struct tag_tracker;

/** Never NULL. What it is given stays the caller's and must outlive it. */
struct tag_tracker *tag_tracker_new(const char *dir, struct recording *recording, struct symbols *symbols);
void tag_tracker_free(struct tag_tracker *f);
/** Looks for ledgers in the directory. */
void tag_tracker_scan(struct tag_tracker *f);
/** Takes up a ledger, if it is none that is known; what it takes of the entry is its own then. */
void tag_tracker_take(struct tag_tracker *f, struct ledger_entry *e);
/**
 * The accounts in the agent's ledger `fd` of process `pid`, when a moment or the end of it is kept; nothing if it has
 * none.
 */
int tag_tracker_keep(struct tag_tracker *f, int fd, pid_t pid, bool alive, const char *root, struct error *e);
/** Keeps what is due at `now` (CLOCK_MONOTONIC), with `last` everything. 0, or the recording's error. */
int tag_tracker_step(struct tag_tracker *f, uint64_t now, bool last, struct error *e);
/** When the next step is due; UINT64_MAX: none is. */
uint64_t tag_tracker_due(const struct tag_tracker *f);
/** What was kept is safe now: ledgers of processes that have ended go. */
void tag_tracker_committed(struct tag_tracker *f);

#endif
