/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUN_LEDGER_TRACKER_H
#define RUN_LEDGER_TRACKER_H

/*
 * Follows the ledgers of one directory over time and keeps them in a recording: points and moments while an image
 * lives, all of it when it has ended; then its ledger is removed.
 *
 * Runs in: the tool. Threads: one. Owns: descriptors of ledgers, until follow_free().
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "model/profile/wrappers.h"
#include "store/recording.h"
#include "symbol/symbol.h"

struct follow;

struct follow_options {
    const char *dir;
    struct recording *recording;
    struct symbols *symbols;
    bool keep_args;
    const struct wrappers *sites; /* see record.h */
};

/** Never NULL. What the options point to stays the caller's and must outlive it. */
struct follow *follow_new(const struct follow_options *o);
void follow_free(struct follow *f);
/** A descriptor that is readable when a ledger has appeared; -1: there is none, follow_step() looks by itself. */
int follow_fd(const struct follow *f);
/** Does what is due; *wait_ms says when to come again. 0, or the recording's error. */
int follow_step(struct follow *f, int *wait_ms, struct error *e);
/** The last look: what has ended is stored and removed, what runs on is stored as running and left alone. */
int follow_finish(struct follow *f, struct error *e);

#endif
