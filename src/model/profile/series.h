/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_SERIES_H
#define MODEL_SERIES_H

/*
 * One process image over time: at each look the samples that are live and old, by stack, and from them how far each
 * stack has grown since any earlier look. Whether that is growth is decided in growth.h.
 *
 * Runs in: the tool. Threads: one at a time. Pure: no I/O, no clock. Owns: all of it, until series_free().
 *
 * A sample is known by its serial, never by its address. It arrives when it becomes old enough to count; it leaves when
 * a look does not find it any more. What a stack holds now less what it held at look j is then
 *
 *     (what arrived after j and is here)  -  (what was here at j and has left),
 *
 * in which samples that are in both have cancelled: two looks at one image share most of their samples, and the
 * difference is known far better than either.
 *
 * Invariant: bounded. At most SERIES_LOOKS looks are kept, dense near the end and ever sparser before; of samples only
 * those that the last look saw; of stacks those that ever had an old sample (no more than the ledger has).
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/hash_map.h"
#include "base/vec.h"
#include "model/profile/estimate.h"

#define SERIES_LOOKS 64

/** A sample that was live and old at the last look. */
struct series_sample {
    uint64_t serial;
    uint64_t
        arrived_ns; /* when it became old, CLOCK_REALTIME; after the look before the one that saw it first */
    uint64_t size_bytes, period_bytes;
    double bytes; /* what it stands for; series_see() finds it */
    uint32_t stack;
    bool fresh; /* the last look was the first that saw it */
};

struct series_samples VEC(struct series_sample);

/** Sums over samples of one stack. */
struct series_sum {
    struct estimate bytes; /* with the sampling error: what the truth is */
    double lumps;          /* sum of (n w)^2: the variance if samples come by chance, each by itself */
};

struct series_stack {
    struct series_sum
        *left;         /* for each look kept, what was here then and has left; NULL: nothing ever left */
    bool shown;        /* the caller's: it has been listed */
    bool growing;      /* the caller's: as it was listed last */
    uint32_t first, n; /* its samples in `by_stack` */
};

struct series {
    uint64_t looks_ns[SERIES_LOOKS]; /* ascending; the last one is the present */
    uint32_t n_looks;
    uint64_t looks_in_all;
    struct series_samples samples; /* by serial */
    struct series_samples coming;  /* of the look under way */
    struct VEC(uint32_t) by_stack; /* numbers of samples, by stack and arrival */
    struct VEC(struct series_stack) stacks;
    struct map keys;
    uint64_t fresh, left; /* samples that came and went with the last look */
};

/** Never NULL. */
struct series *series_new(void);
void series_free(struct series *s);

/** Number of the stack with this key, a new one if need be. */
uint32_t series_stack_of(struct series *s, const void *key, size_t key_bytes);
/** During a look: this sample is live and old. */
void series_see(struct series *s, const struct series_sample *sample);
/** Ends the look, at that time: what was not seen has left. A time before the last look counts as just after it. */
void series_look(struct series *s, uint64_t time_ns);

/** What arrived in (from, to] and is still here, and what was here at look j and has left. */
struct series_sum series_arrived(const struct series *s, uint32_t stack, uint64_t from_ns, uint64_t to_ns);
struct series_sum series_left(const struct series *s, uint32_t stack, uint32_t look);

#endif
