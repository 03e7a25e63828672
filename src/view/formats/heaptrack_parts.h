/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_HEAPTRACK_PARTS_H
#define VIEW_HEAPTRACK_PARTS_H

/*
 * What heaptrack.c (names, stacks, what is to happen), heaptrack_steps.c (when) and heaptrack_play.c (the events)
 * share.
 *
 * Runs in: the tool. Threads: pure. Owns: see each.
 */

#include <stdbool.h>
#include <stdint.h>

#include "model/profile/profile.h"
#include "view/text/sink.h"

/** What becomes of objects. */
enum heaptrack_role {
    HEAPTRACK_KEPT,  /* live at the peak and at the end */
    HEAPTRACK_PEAK,  /* live at the peak, freed later */
    HEAPTRACK_LATE,  /* allocated after the peak, live at the end */
    HEAPTRACK_BRIEF, /* live at neither */
    HEAPTRACK_TEMPORARY,
    HEAPTRACK_ROLES
};

#define HEAPTRACK_NO_INFO UINT32_MAX

/** Objects alike. */
struct heaptrack_piece {
    enum heaptrack_role role;
    uint32_t trace;
    uint64_t size, n; /* bytes of each; how many */
    double phase;     /* in [0, 1): where among its like its objects change first */
    uint64_t made, gone;
    /* numbers in the file: every other object is of the second, so that neighbours differ */
    uint32_t info[2];
};
struct heaptrack_pieces VEC(struct heaptrack_piece);

/** A moment; the first one may be any, the last one is the end. */
struct heaptrack_step {
    uint64_t time_ns;   /* CLOCK_REALTIME */
    double live;        /* bytes, as far as is known */
    double share;       /* of all bytes allocated, those up to here: 0 to 1 */
    double grown;       /* of HEAPTRACK_KEPT and _PEAK, what has been allocated: 0 to 1, and 1 at the peak */
    double shrunk;      /* of HEAPTRACK_PEAK, what has been freed */
    double late;        /* of HEAPTRACK_LATE, what has been allocated */
    uint64_t rss_bytes; /* 0: not known */
};

struct heaptrack_steps {
    struct VEC(struct heaptrack_step) at;
    size_t peak; /* index */
};

/** Bytes that the steps must come to, of the cells that count. */
struct heaptrack_sums {
    double kept, peak, late; /* by role */
    double scale;            /* of the points' bytes, those of cells that count: 1 if all do */
    double allocated;        /* ever, of all cells */
    bool past;               /* the peak is not known */
};

/** Steps from the points. `at` is the caller's to release. */
void heaptrack_steps_make(struct heaptrack_steps *s, const struct profile *p,
                          const struct heaptrack_sums *sums);
/** Writes the events. Changes the pieces. `began_ns` is where time begins. */
void heaptrack_play(struct sink *out, struct heaptrack_pieces *pieces, const struct heaptrack_steps *s,
                    uint64_t began_ns);

#endif
