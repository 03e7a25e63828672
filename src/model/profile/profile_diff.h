/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_PROFILE_DIFF_H
#define MODEL_PROFILE_DIFF_H

/*
 * What grew and what shrank between two profiles. The rows are those of a rollup. Each has its value before,
 * its value after, and the change with a 95 % interval of its own.
 *
 * Runs in: the tool.
 * Threads: pure functions of two profiles, which must not change while a diff of them is in use.
 * Owns: a diff owns its rows, their names, and the joint profile that their paths belong to.
 * Invariant: low <= value <= high of each change; after - before is the change, but for rounding.
 *
 * How the change is estimated
 *
 * The objects that both profiles share are no part of the change, and must be no part of its error: otherwise
 * 10 GiB that stay, known to 1 %, would hide a leak of 50 MiB. So each sum is split (profile_pair.h defines
 * which images are the same):
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
 * GREW and SHRANK share no object, and objects are sampled independently. So the two estimates are
 * independent, each with its interval (estimate.h), and the change g - s has the interval of Zou and Donner
 * ("Construction of confidence limits about effect measures: a general approach", Statistics in Medicine 27
 * (2008) 1693-1702; the method of Newcombe's interval 10 for differences of proportions, Statistics in
 * Medicine 17 (1998) 873-890):
 *
 *     low  = g - s - sqrt((g - low_g)^2 + (high_s - s)^2)
 *     high = g - s + sqrt((high_g - g)^2 + (s - low_s)^2)
 *
 * The high end of g is at most the high end of the whole value after, and that of s at most that of the whole
 * value before. For moments in the past and for two peaks, more samples may have stayed than are known; then
 * the interval is too wide, never too narrow. If one part is impossible (allocated bytes never shrink; both
 * moments are one), it is exactly 0.
 *
 * Several captures a side
 *
 * A capture is a run, a boot, or the state of another process. All captures of a side are one profile here
 * (profile_concat.h), so that stacks and rows of all captures are matched at once. Each capture has a value of its
 * own in each row, 0 if the row is not in it. A side's value is the mean of its captures, and the change is that of
 * the means, with the interval of spread.h, which has all that differs between captures: also the error of sampling.
 * But few samples may be alike by chance, and then show no spread. So if a capture was sampled, the interval is not
 * narrower than the one above either, in which GREW is the mean of the captures after, and SHRANK the mean of those
 * before. The intervals of rows are widened for their number, as spread.h says; those of totals are not.
 *
 * A value may be divided before it is compared: by the seconds or the allocations of its capture (struct diff_side).
 * The divisor counts as exact.
 */

#include "model/profile/call_tree.h"
#include "model/profile/profile_pair.h"
#include "model/profile/rollup.h"

enum diff_part { DIFF_BEFORE, DIFF_AFTER, DIFF_GREW, DIFF_SHRANK, DIFF_STAYED, DIFF_PARTS };

enum diff_amount { DIFF_BYTES, DIFF_COUNT, DIFF_AMOUNTS };

struct diff_value {
    struct rollup_value of[DIFF_PARTS]; /* of several captures: of their mean; and DIFF_STAYED is empty */
    /* The values of the captures, those before first. NULL: there is one on each side. */
    double *captures[DIFF_AMOUNTS];
    uint32_t n[PROFILE_PAIR_SIDES]; /* the number of captures of each side */
    double tail;                    /* of the interval of spread.h, on either side */
};

struct diff_change {
    double value; /* after less before, in bytes or objects */
    struct interval interval;
};

struct diff_row {
    char *name;                        /* never "" */
    const char *module, *file;         /* as in a rollup's row */
    uint32_t index;                    /* as in a rollup's row; index in the joint profile */
    struct diff_value self, inclusive; /* all parts but DIFF_STAYED, which is empty */
    struct diff_change change;         /* of the value that the order uses */
};

struct diff_options {
    enum rollup_group group;
    enum rollup_sort sort;      /* the value whose change the rows show; not age */
    bool inclusive;             /* rows are sorted by inclusive values */
    profile_pair_keep_fn *keep; /* which cells count; NULL: all */
    void *arg;
};

/** One side of a comparison. */
struct diff_side {
    const struct profile *const *captures; /* borrowed */
    uint32_t n;                            /* one at least */
    /* of each capture: its figures are divided by it, which is above 0; NULL: they are not */
    const double *divisors;
};

struct diff {
    struct diff_side side[PROFILE_PAIR_SIDES];    /* as given */
    const struct profile *of[PROFILE_PAIR_SIDES]; /* the capture of each side, or all captures of it as one */
    struct profile *all[PROFILE_PAIR_SIDES];      /* ... which then belongs to the diff; else NULL */
    struct profile_pair *pair;
    struct diff_options options; /* as given */
    bool by_capture; /* values are made of those of each capture: there are several, or divisors */
    bool spread;     /* a side has several captures, so intervals have their spread */
    double tail;     /* ... on either side of the interval of a row; see spread.h */
    struct diff_value total[ROLLUP_METRICS];
    /* bit 1 << metric: not known in one of the two profiles; all bits: one profile has no bounds */
    unsigned unknown;
    struct VEC(
        struct diff_row) rows; /* those in which a change was seen: certain ones first, larger ones first */
    size_t certain;            /* rows whose change is certain, not noise; they come first */
    size_t unchanged;          /* number of rows that are left out */
};

/** Never returns NULL. The profiles must be valid and outlive the diff. */
struct diff *diff_new(const struct profile *before, const struct profile *after,
                      const struct diff_options *o);
/**
 * Like diff_new(), of any number of captures. If there are several, or if there are divisors, no two captures may share
 * an image (diff_shared_image()).
 */
struct diff *diff_new_of(const struct diff_side side[static PROFILE_PAIR_SIDES],
                         const struct diff_options *o);
void diff_free(struct diff *d);

/**
 * Returns whether two captures have an image of the same id: two moments of one process. *one and *other are their
 * numbers; those before come first.
 */
bool diff_shared_image(const struct diff_side side[static PROFILE_PAIR_SIDES], uint32_t *one,
                       uint32_t *other);

/**
 * Returns the tree of all stacks of both sides, with the part of one metric as the live values of its rows. All trees
 * of a diff have the same nodes and rows. The diff must not change while one is in use. Not for values by capture.
 */
struct call_tree *diff_tree(struct diff *d, enum rollup_metric metric, enum diff_part part);
/** As above, of a capture (those before come first), of a diff with values by capture. */
struct call_tree *diff_tree_of(struct diff *d, enum rollup_metric metric, uint32_t capture);

/** Returns the change of the bytes or, with `count`, of the objects. */
struct diff_change diff_change(const struct diff_value *v, bool count);
/** Returns the 95 % interval of DIFF_BEFORE or DIFF_AFTER, of the bytes or of the objects. */
struct interval diff_side_interval(const struct diff_value *v, enum diff_part side, bool count);
/** Returns whether no sample is behind the change: it is exact but for the spread of captures. */
bool diff_is_exact(const struct diff_value *v, bool count);
/** Returns whether the samples are compatible with no change at all. */
static inline bool diff_is_noise(const struct diff_change *c)
{
    return c->interval.low <= 0 && c->interval.high >= 0;
}
/**
 * Returns by how much, at least, after exceeds (1 + share) times before, with 97.5 % confidence. A share of 0
 * gives the low end of the change. For totals.
 */
double diff_least_excess(const struct diff_value *v, bool count, double share);
static inline bool diff_known(const struct diff *d, enum rollup_metric m)
{
    return !(d->unknown >> m & 1);
}
/** Returns whether the order is by objects and not by bytes. */
static inline bool diff_counts(enum rollup_sort sort)
{
    return sort == ROLLUP_SORT_ALLOCATIONS;
}

#endif
