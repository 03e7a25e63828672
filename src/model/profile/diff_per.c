/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/profile/diff_per.h"

static double seconds_of(const struct profile *p)
{
    uint64_t began = p->started_ns, ended = 0;
    vec_each (const struct profile_image, i, &p->images) {
        if (!p->started_ns && (!began || i->began_ns < began))
            began = i->began_ns;
        ended = i->taken_ns > ended ? i->taken_ns : ended;
    }
    return began && ended > began ? (double)(ended - began) / 1e9 : 0;
}

double diff_per_divisor(const struct profile *p, enum diff_per per)
{
    double allocations = 0;
    if (per == DIFF_PER_SECOND)
        return seconds_of(p);
    if (per != DIFF_PER_EVENT)
        return 1;
    vec_each (const struct profile_cell, c, &p->cells)
        allocations += c->allocated.count;
    return allocations;
}

bool diff_per_exact(const struct profile *p)
{
    vec_each (const struct profile_cell, c, &p->cells)
        if (c->period_bytes > 1)
            return false;
    return true;
}

bool diff_per_of_kernel(const struct profile *p)
{
    vec_each (const struct profile_image, i, &p->images)
        if (!profile_is_kernel(i))
            return false;
    return p->images.len > 0;
}
