/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_PROFILE_DIFF_H
#define MODEL_PROFILE_DIFF_H

/*
 * What grew and what shrank from one profile to another: rows as a rollup has them, each with what it was before, what
 * it is after, and the change between with a 95 % interval of its own.
 *
 * Runs in: the tool. Threads: pure functions of two profiles, which must not change while a diff of them is in use.
 * Owns: a diff owns its rows, their names, and the joint profile that their paths belong to.
 * Invariant: low <= value <= high of each change; after - before is the change, but for rounding.
 *
 * How the change is estimated
 *
 * What both profiles share is no part of the change, and must be no part of its error: of 10 GiB that stay, known to
 * 1 %, a leak of 50 MiB would never show. So each sum is taken apart (profile_pair.h says what is the same image):
 *
 *                      GREW (only after)      SHRANK (only before)    STAYED
 *     live             live, not STAYED       live, not STAYED        live at both moments of one image
 *     allocated,       allocated since        nothing                 all of the earlier moment
 *     temporary
 *     peak             that of after,         that of before,         what cannot have been freed between two peaks of
 *                      not STAYED             not STAYED              one image
 *     of different     all of after           all of before           nothing
 *     images
 *
 * GREW and SHRANK share no object, and objects are sampled apart from each other: so the two estimates are independent,
 * each with its interval (estimate.h), and the change g - s has that of Zou and Donner ("Construction of confidence
 * limits about effect measures: a general approach", Statistics in Medicine 27 (2008) 1693-1702; the method of
 * Newcombe's interval 10 for differences of proportions, Statistics in Medicine 17 (1998) 873-890):
 *
 *     low  = g - s - sqrt((g - low_g)^2 + (high_s - s)^2)
 *     high = g - s + sqrt((high_g - g)^2 + (s - low_s)^2)
 *
 * where the high end of g is no higher than that of all that there is after, and that of s than that of all before.
 * Where more samples stayed than is known, the interval is too wide, never too narrow: of moments in the past, and of
 * two peaks. Where one part cannot be (nothing is allocated less; both moments are one) it is 0 exactly.
 */

#include "model/profile/profile_pair.h"
#include "model/profile/rollup.h"

enum diff_part { DIFF_BEFORE, DIFF_AFTER, DIFF_GREW, DIFF_SHRANK, DIFF_STAYED, DIFF_PARTS };

struct diff_value {
    struct rollup_value of[DIFF_PARTS];
};

struct diff_change {
    double value; /* after less before: bytes or objects */
    struct interval interval;
};

struct diff_row {
    char *name;                        /* never "" */
    const char *module, *file;         /* as of a rollup's row */
    uint32_t index;                    /* as of a rollup's row, in the joint profile */
    struct diff_value self, inclusive; /* but for DIFF_STAYED, which is empty */
    struct diff_change change;         /* of the one that the order goes by */
};

struct diff_options {
    enum rollup_group group;
    enum rollup_sort sort;      /* whose change the rows are about; not by age */
    bool inclusive;             /* rows go by inclusive values */
    profile_pair_keep_fn *keep; /* which cells count; NULL: all */
    void *arg;
};

struct diff {
    const struct profile *of[PROFILE_PAIR_SIDES]; /* borrowed */
    struct profile_pair *joint;
    struct diff_options options; /* as given */
    struct diff_value total[ROLLUP_METRICS];
    unsigned unknown; /* bit 1 << metric: not known of one of the two; all of them: one has no bounds */
    struct VEC(
        struct diff_row) rows; /* those in which a change was seen: certain ones first, larger ones first */
    size_t certain;            /* rows whose change is not within the noise; they come first */
    size_t unchanged;          /* rows that are left out */
};

/** Never NULL. The profiles must be valid and outlive it. */
struct diff *diff_new(const struct profile *before, const struct profile *after,
                      const struct diff_options *o);
void diff_free(struct diff *d);

/** The change of the bytes or (count) the objects. */
struct diff_change diff_change(const struct diff_value *v, bool count);
/** Whether it may be none at all, as far as the samples tell. */
static inline bool diff_is_noise(const struct diff_change *c)
{
    return c->interval.low <= 0 && c->interval.high >= 0;
}
/**
 * By how much, at the least, after exceeds (1 + share) times before, at 97.5 % on this side; a share of 0 asks for the
 * change's own low end. Of totals.
 */
double diff_least_excess(const struct diff_value *v, bool count, double share);
static inline bool diff_known(const struct diff *d, enum rollup_metric m)
{
    return !(d->unknown >> m & 1);
}
/** The sort order is about objects, not bytes. */
static inline bool diff_counts(enum rollup_sort sort)
{
    return sort == ROLLUP_SORT_ALLOCATIONS;
}

#endif
