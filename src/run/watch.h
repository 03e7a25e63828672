/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUN_WATCH_H
#define RUN_WATCH_H

/*
 * `allium watch`: looks at ledgers again and again, and knows what has changed. It reads them as any reader does; the
 * processes are not asked. When to look, and what to show of it, is the caller's affair.
 *
 * Runs in: the tool. Threads: one. Owns: what it knows of each image, until watch_free().
 * Invariant: what it keeps is bounded by what runs: an image that has ended is forgotten.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "model/profile/watch_snapshot.h"
#include "model/profile/wrappers.h"
#include "query/alert.h"
#include "run/suppressions.h"

struct symbol_servers;

struct watch_options {
    int32_t pid;                     /* 0: all processes of this user that have a ledger */
    struct rollup_options old, live; /* what counts as old, and as live: keep, keep_sample and arg */
    uint64_t older_than_ns;          /* as `old` has it */
    bool named;                      /* these need names */
    const struct wrappers *wrappers; /* told apart where there are names; borrowed */
    const struct alert *alert;       /* NULL: no alerts; borrowed */
    struct suppressions *dismissed;  /* borrowed */
    struct symbol_servers *servers;  /* for debug files; NULL: none; borrowed */
};

struct watch;

/** Never NULL. */
struct watch *watch_new(const struct watch_options *o);
void watch_free(struct watch *w);

/**
 * Takes a look at all there is; the caller frees it with watch_snapshot_free(). Of what cannot be read a line is in `e`
 * ("" if all could be); the look is there even so.
 */
struct watch_snapshot *watch_look(struct watch *w, enum watch_snapshot_kind kind, struct error *e);
/** The same of a profile that does not change (a recording), which it takes. */
struct watch_snapshot *watch_look_once(const struct watch_options *o, struct profile *p);
/** All that the last look saw is known from now on, and not shown. How many samples that are. */
uint64_t watch_dismiss(struct watch *w);
/** The process that was asked for has ended, and the last look has told so if it ever had a ledger. */
bool watch_is_over(const struct watch *w);

#endif
