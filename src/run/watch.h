/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUN_WATCH_H
#define RUN_WATCH_H

/*
 * `allium watch`: reads ledgers again and again, and finds out what has changed. It reads them as any reader
 * does, without a word to the processes. The caller decides when to read, and what to show.
 *
 * Runs in: the tool. Threads: one. Owns: its data about each image, until watch_free().
 * Invariant: its size is bounded by the running processes: data of an image that has ended is removed.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "model/profile/watch_snapshot.h"
#include "model/profile/wrappers.h"
#include "query/alert.h"
#include "run/suppressions.h"

struct symbol_servers;

/**
 * Samples are old from five minutes on; in a process younger than ten minutes, from half its age on. So there is
 * something to judge from the start, and a sample that is old stays old.
 */
#define WATCH_OLDER_DEFAULT UINT64_MAX
#define WATCH_OLD_AGE_NS    300000000000u

struct watch_options {
    int32_t pid;                     /* 0: all processes of this user that have a ledger */
    struct rollup_options live;      /* which samples are watched: keep, keep_sample and arg */
    uint64_t older_than_ns;          /* the age from which on they are old, or WATCH_OLDER_DEFAULT */
    bool named;                      /* the options need names */
    bool nameless;                   /* rows get no names */
    const char *dir;                 /* only ledgers of this folder; NULL: of all; borrowed */
    const struct wrappers *wrappers; /* marked where there are names; borrowed */
    const struct alert *alert;       /* NULL: no alerts; borrowed */
    struct suppressions *dismissed;  /* borrowed */
    struct symbol_servers *servers;  /* for debug files; NULL: none; borrowed */
};

struct watch;

/** Never returns NULL. */
struct watch *watch_new(const struct watch_options *o);
void watch_free(struct watch *w);

/**
 * Takes a snapshot of all ledgers; the caller frees it with watch_snapshot_free(). `e` gets a line about
 * ledgers that could not be read ("" if all could); the snapshot is valid even so.
 */
struct watch_snapshot *watch_take_snapshot(struct watch *w, enum watch_snapshot_kind kind, struct error *e);
/** Like watch_take_snapshot(), for a profile that does not change (a recording). Takes over the profile. */
struct watch_snapshot *watch_snapshot_of(const struct watch_options *o, struct profile *p);
/** Suppresses all samples of the last snapshot. Returns their number. */
uint64_t watch_dismiss(struct watch *w);
/** Returns true if the watched process has ended and, if it ever had a ledger, the last snapshot has shown
 * its end. */
bool watch_is_over(const struct watch *w);

#endif
