/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_HEAPTRACK_PARTS_H
#define VIEW_HEAPTRACK_PARTS_H

/*
 * Shared by heaptrack.c (names, stacks, what happens), heaptrack_steps.c (when) and heaptrack_play.c (the
 * events).
 */

#include <stdbool.h>
#include <stdint.h>

#include "model/profile/profile.h"
#include "view/text/sink.h"

/** The life of objects. In this order they are allocated within a step. */
enum heaptrack_role {
    HEAPTRACK_BRIEF,     /* live neither at the peak nor at the end */
    HEAPTRACK_TEMPORARY, /* the same, and freed at once */
    HEAPTRACK_KEPT,      /* live at the peak and at the end */
    HEAPTRACK_PEAK,      /* live at the peak, freed later */
    HEAPTRACK_LATE,      /* allocated after the peak, live at the end */
    HEAPTRACK_TOP,       /* one temporary object that makes the peak */
    HEAPTRACK_ROLES
};

#define HEAPTRACK_NO_INFO UINT32_MAX

/** A group of equal objects. */
struct heaptrack_piece {
    enum heaptrack_role role;
    uint32_t trace;
    uint64_t size, n; /* bytes of each; number of objects */
    double phase;     /* in [0, 1): when its objects change, compared with other groups */
    uint64_t allocated, released;
    /* numbers in the file: every second object uses the second one, so that neighbours differ */
    uint32_t info[2];
};
struct heaptrack_pieces VEC(struct heaptrack_piece);

/** One time step. The first one may be at any time, the last one is the end. */
struct heaptrack_step {
    uint64_t time_ns;   /* CLOCK_REALTIME */
    double live;        /* bytes, as far as is known */
    double share;       /* share of all allocated bytes that were allocated up to here: 0 to 1 */
    uint64_t rss_bytes; /* 0: not known */
    /* the shares of a role's objects that are allocated, and freed, up to here: 0 to 1 */
    double allocated[HEAPTRACK_ROLES], released[HEAPTRACK_ROLES];
};

struct heaptrack_steps {
    struct VEC(struct heaptrack_step) at;
    size_t peak; /* index */
};

/** The bytes that the steps must add up to, of the cells that count. */
struct heaptrack_sums {
    double bytes[HEAPTRACK_ROLES];
    double scale;     /* of the points' bytes, the share of cells that count: 1 if all do */
    double allocated; /* ever, by all cells */
    bool past;        /* the peak is not known */
};

static inline double heaptrack_at_peak(const struct heaptrack_sums *s)
{
    return s->bytes[HEAPTRACK_KEPT] + s->bytes[HEAPTRACK_PEAK] + s->bytes[HEAPTRACK_TOP];
}

/** Writes "+ 1f": what happens, and a number. */
void heaptrack_put(struct sink *out, char what, uint64_t number);
/** Computes the steps from the points. The caller releases `at`. */
void heaptrack_steps_make(struct heaptrack_steps *s, const struct profile *p,
                          const struct heaptrack_sums *sums);
/** Writes the events. Changes the groups. `began_ns` is time 0 of the file. */
void heaptrack_play(struct sink *out, struct heaptrack_pieces *pieces, const struct heaptrack_steps *s,
                    uint64_t began_ns);

#endif
