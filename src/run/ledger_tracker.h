/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUN_LEDGER_TRACKER_H
#define RUN_LEDGER_TRACKER_H

/*
 * Follows the ledgers of one directory over time and keeps them in a recording: points and moments while an image
 * lives, all of it when it has ended; then its ledger is removed.
 *
 * Runs in: the tool. Threads: one. Owns: descriptors of ledgers, until ledger_tracker_free().
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
    pid_t pid;                    /* the command */
    const struct wrappers *sites; /* see record.h */
    const char *own_allocator; /* the program that was started, if it has an allocator of its own; or NULL */
};

/** Never NULL. What the options point to stays the caller's and must outlive it. */
struct ledger_tracker *ledger_tracker_new(const struct ledger_tracker_options *o);
void ledger_tracker_free(struct ledger_tracker *f);
/**
 * A descriptor that is readable when a ledger has appeared; -1: there is none, ledger_tracker_step() looks by itself.
 */
int ledger_tracker_fd(const struct ledger_tracker *f);
/** Does what is due; *wait_ms says when to come again. 0, or the recording's error. */
int ledger_tracker_step(struct ledger_tracker *f, int *wait_ms, struct error *e);
/** The image that the command was when it ended, after ledger_tracker_finish(); 0: it has no ledger. */
uint64_t ledger_tracker_command_image(const struct ledger_tracker *f);
/** The last look: what has ended is stored and removed, what runs on is stored as running and left alone. */
int ledger_tracker_finish(struct ledger_tracker *f, struct error *e);

#endif
