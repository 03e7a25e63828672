/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_WATCH_SNAPSHOT_H
#define MODEL_WATCH_SNAPSHOT_H

/*
 * One snapshot of `allium watch`: the old memory of the processes, by stack, how much of it is new, and what
 * grows. run/watch.h makes it, view/profile/watch_view.h shows it.
 *
 * Runs in: the tool. Threads: one at a time. Owns: all it points to, until watch_snapshot_free().
 */

#include <stdbool.h>
#include <stdint.h>

#include "model/profile/growth.h"
#include "model/profile/rollup.h"

/** Why the snapshot was taken, and so how much of it is shown. */
enum watch_snapshot_kind {
    WATCH_SNAPSHOT_CHANGES, /* the interval has passed: shows what has changed */
    WATCH_SNAPSHOT_ALL,     /* all of it was requested, or it is the first */
    WATCH_SNAPSHOT_FREES,   /* recent frees were requested */
};

/** A stack with old samples: row `number` of the rollup. */
struct watch_snapshot_row {
    uint32_t number;
    uint64_t fresh_samples; /* how many of its samples no earlier snapshot had seen as old */
    /* the stack was on no list yet; always false at the first snapshot of its process */
    bool is_new;
    bool turned; /* it grows now and did not when it was last listed, or the other way round */
    struct growth growth;
};

struct watch_snapshot_image {
    struct profile *profile; /* of one process image; from a recording, of all images */
    struct rollup *rollup;   /* by stack: samples that are live, old and not suppressed */
    struct estimate live;    /* bytes, of any age */
    uint64_t older_than_ns;  /* the age from which on a sample is old */
    bool half_its_age;       /* ... is half the age of the process */
    uint64_t dismissed;      /* old samples that are suppressed */
    bool began;              /* this is the first snapshot of the image */
    bool changed;            /* some row has fresh samples, is new or has turned */
    struct VEC(struct watch_snapshot_row) rows;
};

struct watch_snapshot_ended {
    int32_t pid; /* 0: the process is not visible from here */
    uint64_t image_id;
    char *comm;
};

/** An alert condition that has become true. */
struct watch_snapshot_alert {
    uint32_t image; /* index in `images` */
    uint32_t row;   /* index in its rows; PROFILE_NONE: it is about the process */
    char *condition;
};

struct watch_snapshot {
    uint64_t time_ns; /* CLOCK_REALTIME */
    uint64_t number;  /* from 1 */
    enum watch_snapshot_kind kind;
    struct VEC(struct watch_snapshot_image) images; /* sorted by memory, most first */
    struct VEC(struct watch_snapshot_ended) ended;  /* since the previous snapshot */
    struct VEC(struct watch_snapshot_alert) alerts;
};

void watch_snapshot_free(struct watch_snapshot *l);
/** Returns true when there is nothing to show but sums. */
bool watch_snapshot_is_quiet(const struct watch_snapshot *l);
/** Returns the estimate of the old memory that is not suppressed. */
const struct estimate *watch_snapshot_old(const struct watch_snapshot_image *i);
const struct rollup_row *watch_snapshot_rollup_row(const struct watch_snapshot_image *i,
                                                   const struct watch_snapshot_row *row);

#endif
