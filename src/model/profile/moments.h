/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_MOMENTS_H
#define MODEL_MOMENTS_H

/*
 * The stored moments of a profile, of all its images together: what was live at each, with its 95 % interval; and the
 * changes of cells from one to the next, for a page that shows the profile at any of them.
 *
 * Runs in: the tool. Threads: pure functions of a profile, which must be valid. Owns: a list of moments, until
 * moments_release().
 */

#include "model/profile/profile.h"

/** One time, at which at least one image has a stored moment. */
struct moments_time {
    uint64_t time_ns;           /* CLOCK_REALTIME */
    struct estimate live_bytes; /* of all images that had not ended */
};

/** What a cell was from this time on, until its next change. */
struct moments_change {
    uint32_t time; /* in `times` */
    struct profile_moment_cell to;
};

struct moments {
    struct VEC(struct moments_time) times;     /* ascending */
    struct VEC(struct moments_change) changes; /* in the order of time; at most one of a cell at one time */
};

/**
 * Takes every stride-th of the times, and the last one: 1 takes all. Each is as exact as with stride 1: a change
 * between two of them counts from the later one on.
 */
void moments_of(struct moments *m, const struct profile *p, uint32_t stride);
void moments_release(struct moments *m);

/** Returns whether the image has ended, so that it has no memory after its `taken_ns`. */
bool moments_image_ended(const struct profile_image *i);

#endif
