/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUN_READ_PACE_H
#define RUN_READ_PACE_H

/*
 * When the recorder reads the ledger of a running process. A point has the counters of the header; a moment has all
 * sums. Both come often at first and less often as the process grows older. If the points of all processes take more
 * than some 0.4 % of a processor, points come less often, and so do moments beyond 1 %; at most every 10 s.
 *
 * Runs in: the tool. Threads: pure. Times are CLOCK_MONOTONIC in ns; costs are processor time in ns.
 */

#include <stdint.h>

/* What all processes have in common. */
struct read_pace {
    uint64_t began_ns;
    uint64_t points_ns, moments_ns; /* the cost of all points, and of all moments */
};

/* Of one process image. */
struct image_pace {
    uint64_t found_ns;
    uint64_t next_point_ns, next_moment_ns;
    uint64_t point_step_ns, moment_step_ns; /* the least time between two */
};

struct image_pace image_pace_begin(uint64_t now_ns);
/** After a moment: sets the time of the next one. `cost_ns`: that of this one, without finding names. */
void image_pace_moment(struct image_pace *i, struct read_pace *all, uint64_t now_ns, uint64_t cost_ns);
/** After a point: sets the time of the next one. `cost_ns`: that of this one, without its moment. */
void image_pace_point(struct image_pace *i, struct read_pace *all, uint64_t now_ns, uint64_t cost_ns);
/** After the recording has dropped every other point of the image, to save room: doubles both steps. */
void image_pace_thin(struct image_pace *i);

#endif
