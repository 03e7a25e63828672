/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_SERIES_H
#define MODEL_SERIES_H

/*
 * One process image over time: at each snapshot, the live samples that are old, by stack; and from them, how
 * much each stack has grown since any earlier snapshot. growth.h decides whether that is growth.
 *
 * Runs in: the tool. Threads: one at a time. Pure: no I/O, no clock. Owns: all of it, until series_free().
 *
 * A sample is identified by its serial, never by its address. It arrives when it becomes old enough to count;
 * it leaves when a snapshot does not find it any more. The bytes that a stack holds now less the bytes that
 * it held at snapshot j are then
 *
 *     (what arrived after j and is here)  -  (what was here at j and has left).
 *
 * In this difference the samples that are in both have cancelled. Two snapshots of one image share most of
 * their samples, so the difference is known far better than either.
 *
 * Invariant: memory is bounded. At most SERIES_SNAPSHOTS snapshots are stored, dense near the end and sparser and
 * sparser before; of samples, only those that the last snapshot saw; of stacks, those that ever had an old
 * sample (no more than the ledger has).
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/hash_map.h"
#include "base/vec.h"
#include "model/profile/estimate.h"

#define SERIES_SNAPSHOTS 64

/** A sample that was live and old at the last snapshot. */
struct series_sample {
    uint64_t serial;
    /* CLOCK_REALTIME, on the scale of the snapshots; later than the last snapshot that did not see it */
    uint64_t arrived_ns;
    uint64_t size_bytes, period_bytes;
    double bytes; /* the bytes that it represents; series_see() computes them */
    uint32_t stack;
    bool fresh; /* the last snapshot was the first that saw it */
};

struct series_samples VEC(struct series_sample);

/** Sums over samples of one stack. */
struct series_sum {
    struct estimate bytes; /* with the sampling error of the true value */
    double lumps;          /* sum of (n w)^2: the variance if samples arrive at random, independently */
};

struct series_stack {
    /* for each stored snapshot, the samples that were here then and have left; NULL: none ever left */
    struct series_sum *left;
    bool shown;        /* for the caller: it was listed */
    bool growing;      /* for the caller: as it was listed last */
    uint32_t first, n; /* its samples in `by_stack` */
};

struct series {
    uint64_t snapshots_ns[SERIES_SNAPSHOTS]; /* ascending; the last one is the present snapshot */
    uint32_t n_snapshots;
    uint64_t snapshots_in_all;
    struct series_samples samples; /* by serial */
    struct series_samples coming;  /* of the snapshot in progress */
    struct VEC(uint32_t) by_stack; /* indices of samples, sorted by stack and arrival */
    struct VEC(struct series_stack) stacks;
    struct map keys;
    uint64_t fresh, left; /* samples that the last snapshot saw first, and that it missed */
};

/** Never NULL. */
struct series *series_new(void);
void series_free(struct series *s);

/** Returns the number of the stack with this key, a new one if need be. */
uint32_t series_stack_of(struct series *s, const void *key, size_t key_bytes);
/** During a snapshot: this sample is live and old. */
void series_see(struct series *s, const struct series_sample *sample);
/** Ends the snapshot, at that time: samples that were not seen have left. A time before the last snapshot
 * counts as just after it. */
void series_end_snapshot(struct series *s, uint64_t time_ns);

/** Return the samples that arrived in (from, to] and are still here, and the samples that were here at
 * snapshot `snapshot` and have left. */
struct series_sum series_arrived(const struct series *s, uint32_t stack, uint64_t from_ns, uint64_t to_ns);
struct series_sum series_left(const struct series *s, uint32_t stack, uint32_t snapshot);

#endif
