/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/watch_old.h"

uint64_t watch_old_age_ns(const struct watch_options *o, const struct profile_image *i)
{
    uint64_t half_ns = i->taken_ns > i->began_ns ? (i->taken_ns - i->began_ns) / 2 : 0;
    if (o->older_than_ns != WATCH_OLDER_DEFAULT)
        return o->older_than_ns;
    return half_ns < WATCH_OLD_AGE_NS ? half_ns : WATCH_OLD_AGE_NS;
}

bool watch_is_old(const struct watch_options *o, const struct profile *p, uint32_t sample)
{
    const struct profile_sample *s = &p->samples.at[sample];
    const struct rollup_options *live = &o->live;
    return profile_age_ns(p, s) >= watch_old_age_ns(o, &p->images.at[p->cells.at[s->cell].image]) &&
           (!live->keep || live->keep(live->arg, p, s->cell)) &&
           (!live->keep_sample || live->keep_sample(live->arg, p, sample));
}
