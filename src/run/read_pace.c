/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/read_pace.h"

#include <math.h>

#define MS              1000000ull
#define POINT_FIRST_NS  (10 * MS)
#define MOMENT_FIRST_NS (100 * MS)
#define LAST_NS         (10000 * MS)
#define AGE_SHARE       32  /* intervals grow to between 1/64 and 1/32 of the age of an image */
#define POINTS_SHARE    250 /* points of all images may take 1/250 of the time and COST_FIRST_NS */
#define MOMENTS_SHARE   100
#define COST_FIRST_NS   (20 * MS)

struct image_pace image_pace_begin(uint64_t now_ns)
{
    return (struct image_pace){.found_ns = now_ns,
                               .next_point_ns = now_ns,
                               .point_step_ns = POINT_FIRST_NS,
                               .moment_step_ns = MOMENT_FIRST_NS};
}

/*
 * Returns the time until the next point or moment: first_ns, doubled as long as the result is at most 1/32 of the age.
 * If `spent_ns` exceeds the allowed cost, this share grows with the square of the excess: 4/32 at twice the cost.
 */
static uint64_t step_of(uint64_t first_ns, uint64_t age_ns, uint64_t spent_ns, uint64_t allowed_ns)
{
    double over = (double)spent_ns / (double)(allowed_ns + COST_FIRST_NS);
    double least = (double)age_ns * fmin(fmax(over * over, 1) / AGE_SHARE, 1);
    while ((double)(first_ns * 2) <= least && first_ns * 2 <= LAST_NS)
        first_ns *= 2;
    return first_ns;
}

void image_pace_moment(struct image_pace *i, struct read_pace *all, uint64_t now_ns, uint64_t cost_ns)
{
    all->moments_ns += cost_ns;
    uint64_t step = step_of(i->moment_step_ns, now_ns - i->found_ns, all->moments_ns,
                            (now_ns - all->began_ns) / MOMENTS_SHARE);
    i->next_moment_ns = now_ns + step;
}

void image_pace_point(struct image_pace *i, struct read_pace *all, uint64_t now_ns, uint64_t cost_ns)
{
    all->points_ns += cost_ns;
    uint64_t step = step_of(i->point_step_ns, now_ns - i->found_ns, all->points_ns,
                            (now_ns - all->began_ns) / POINTS_SHARE);
    i->next_point_ns = (now_ns / step + 1) * step; /* aligned: points of several images have equal times */
}

void image_pace_thin(struct image_pace *i)
{
    i->point_step_ns = i->point_step_ns * 2 < LAST_NS ? i->point_step_ns * 2 : LAST_NS;
    i->moment_step_ns = i->moment_step_ns * 2 < LAST_NS ? i->moment_step_ns * 2 : LAST_NS;
}
