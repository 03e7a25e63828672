/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUN_READ_PACE_H
#define RUN_READ_PACE_H

/*
 * When the recorder reads the ledger of a running process. A point has the counters of the header; a moment has the
 * sums of all cells, too. Both come often at first and less often as the process grows older. If the points of all
 * processes take more than some 0.4 % of one processor's time, the intervals between points grow; above 1 % for
 * moments, so do the intervals between moments. No interval exceeds 10 s.
 *
 * Runs in: the tool. Threads: pure. Times are CLOCK_MONOTONIC in ns; costs are processor time in ns.
 */

#include <stdint.h>

/* The recorder's costs for all processes together. */
struct read_pace {
    uint64_t began_ns;
    uint64_t points_ns, moments_ns; /* total cost of points; total cost of moments */
};

/* Of one process image. */
struct image_pace {
    uint64_t found_ns;
    uint64_t next_point_ns, next_moment_ns;
    uint64_t point_step_ns, moment_step_ns; /* the least time between two */
};

struct image_pace image_pace_begin(uint64_t now_ns);
/** After a moment: sets the time of the next moment. `cost_ns`: cost of this moment, without the search for names. */
void image_pace_moment(struct image_pace *i, struct read_pace *all, uint64_t now_ns, uint64_t cost_ns);
/** After a point: sets the time of the next point. `cost_ns`: cost of this point, without the moment taken with it. */
void image_pace_point(struct image_pace *i, struct read_pace *all, uint64_t now_ns, uint64_t cost_ns);
/** After the recording has dropped every other point of the image, to save room: doubles both steps. */
void image_pace_thin(struct image_pace *i);

#endif
