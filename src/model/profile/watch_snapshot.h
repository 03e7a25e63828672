/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_WATCH_SNAPSHOT_H
#define MODEL_WATCH_SNAPSHOT_H

/*
 * One look of `allium watch`: what the processes hold that is old, by stack, what of it is new, and what grows. What
 * run/watch.h finds and view/profile/watch_view.h shows.
 *
 * Runs in: the tool. Threads: one at a time. Owns: all it points to, until watch_snapshot_free().
 */

#include <stdbool.h>
#include <stdint.h>

#include "model/profile/growth.h"
#include "model/profile/rollup.h"

/** Why there is this look, and so how much of it is shown. */
enum watch_snapshot_kind {
    WATCH_SNAPSHOT_CHANGES, /* it was time: what has changed since the last one */
    WATCH_SNAPSHOT_ALL,     /* somebody asked for all of it, or it is the first */
    WATCH_SNAPSHOT_FREES,   /* somebody asked for recent frees */
};

/** A stack with something old in it: row `number` of the rollup. */
struct watch_snapshot_row {
    uint32_t number;
    uint64_t fresh_samples; /* of its samples, those that no earlier look had seen as old */
    bool is_new;            /* the whole stack was on no list yet; never at the first look at its process */
    bool turned;            /* growing now, and not when it was last on a list, or the other way round */
    struct growth growth;
};

struct watch_snapshot_image {
    struct profile *profile; /* of one process image; of a recording, of all */
    struct rollup *rollup;   /* by stack: live, old and not dismissed */
    struct estimate live;    /* bytes, of any age */
    uint64_t dismissed;      /* samples that are old and not shown */
    bool began;              /* this is the first look at it */
    bool changed;            /* some row is fresh, new or turned */
    struct VEC(struct watch_snapshot_row) rows;
};

struct watch_snapshot_ended {
    int32_t pid; /* 0: not seen from here */
    uint64_t image_id;
    char *comm;
};

/** A condition that has come true. */
struct watch_snapshot_alert {
    uint32_t image; /* in `images` */
    uint32_t row;   /* in its rows; PROFILE_NONE: it is about the process */
    char *condition;
};

struct watch_snapshot {
    uint64_t time_ns; /* CLOCK_REALTIME */
    uint64_t number;  /* from 1 */
    uint64_t older_than_ns;
    enum watch_snapshot_kind kind;
    struct VEC(struct watch_snapshot_image) images; /* those that hold most first */
    struct VEC(struct watch_snapshot_ended) ended;  /* since the last look */
    struct VEC(struct watch_snapshot_alert) alerts;
};

void watch_snapshot_free(struct watch_snapshot *l);
/** True when there is nothing to tell but sums. */
bool watch_snapshot_is_quiet(const struct watch_snapshot *l);
/** Estimate of what is old and not dismissed. */
const struct estimate *watch_snapshot_old(const struct watch_snapshot_image *i);
const struct rollup_row *watch_snapshot_rollup_row(const struct watch_snapshot_image *i,
                                                   const struct watch_snapshot_row *row);

#endif
