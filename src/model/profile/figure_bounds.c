/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/profile/figure_bounds.h"

#include "model/trace/clock_kind.h"

bool figure_bounds_of(const struct profile *p, enum rollup_metric m)
{
    const bool is_of_order = m != ROLLUP_ALLOCATED && m != ROLLUP_REQUESTED && m != ROLLUP_SLACK;
    uint64_t lost = p->trace.cut_packets;
    if (!p->trace.known)
        return false;
    vec_each (const struct profile_image, i, &p->images)
        lost += i->losses[PROFILE_LOST_SAMPLES];
    return lost || (is_of_order && clock_kind_has_bounds(profile_text(p, p->trace.clock)));
}

bool figure_bounds_of_side(const struct diff *d, enum profile_pair_side side, enum rollup_metric m)
{
    for (uint32_t i = 0; i < d->side[side].n; i++)
        if (figure_bounds_of(d->side[side].captures[i], m))
            return true;
    return false;
}
