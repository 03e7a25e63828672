/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUN_LEDGER_TRACKER_H
#define RUN_LEDGER_TRACKER_H

/*
 * Follows the ledgers of one directory and stores them in a recording: points and snapshots while an image
 * lives, and everything when it has ended. Then its ledger is removed.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "model/profile/wrappers.h"
#include "store/recording.h"
#include "symbol/symbol.h"

struct ledger_tracker;

struct ledger_tracker_options {
    const char *dir;
    struct recording *recording;
    struct symbols *symbols;
    bool keep_args;
    pid_t pid;                    /* pid of the command */
    const struct wrappers *sites; /* see record.h */
    const char *own_allocator;    /* the started program, if it has an allocator of its own; or NULL */
};

/**
 * Never returns NULL. The data that the options point to belongs to the caller and must outlive the tracker.
 */
struct ledger_tracker *ledger_tracker_new(const struct ledger_tracker_options *o);
void ledger_tracker_free(struct ledger_tracker *f);
/**
 * Returns a descriptor that is readable when a ledger has appeared; -1: there is none, and
 * ledger_tracker_step() polls.
 */
int ledger_tracker_fd(const struct ledger_tracker *f);
/**
 * Does the work that is due; *wait_ms is the time until the next call. Returns 0, or the recording's error.
 */
int ledger_tracker_step(struct ledger_tracker *f, int *wait_ms, struct error *e);
/** Returns the image of the command at its end, after ledger_tracker_finish(); 0: it has no ledger. */
uint64_t ledger_tracker_command_image(const struct ledger_tracker *f);
/** The last step: ledgers of ended processes are stored and removed; ledgers of processes that run on are
 * stored as running, and stay. */
int ledger_tracker_finish(struct ledger_tracker *f, struct error *e);

#endif
