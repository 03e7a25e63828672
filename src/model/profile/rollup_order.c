/* SPDX-License-Identifier: BSD-2-Clause */
/* The values that rows are sorted by, and rollups for views that show only the first rows. */
#include "model/profile/rollup.h"

#include <assert.h>

enum rollup_metric rollup_sort_metric(enum rollup_sort sort)
{
    static const enum rollup_metric metrics[] = {
        [ROLLUP_SORT_LIVE] = ROLLUP_LIVE,           [ROLLUP_SORT_PEAK] = ROLLUP_PEAK,
        [ROLLUP_SORT_ALLOCATED] = ROLLUP_ALLOCATED, [ROLLUP_SORT_ALLOCATIONS] = ROLLUP_ALLOCATED,
        [ROLLUP_SORT_TEMPORARY] = ROLLUP_TEMPORARY, [ROLLUP_SORT_AGE] = ROLLUP_LIVE,
        [ROLLUP_SORT_REQUESTED] = ROLLUP_REQUESTED, [ROLLUP_SORT_SLACK] = ROLLUP_SLACK,
    };
    return metrics[sort];
}

bool rollup_sort_known(enum rollup_sort sort, const struct rollup_values *v)
{
    return rollup_known(v, sort == ROLLUP_SORT_AGE ? ROLLUP_AGES : rollup_sort_metric(sort));
}

struct rollup_value rollup_value_of(const struct rollup_values *v, enum rollup_metric m)
{
    if (m < ROLLUP_METRICS)
        return v->of[m];
    struct rollup_value value = v->of[ROLLUP_ALLOCATED]; /* exact, where it is known what was requested */
    value.bytes.value = m == ROLLUP_SLACK ? value.bytes.value - v->requested_bytes : v->requested_bytes;
    value.bytes.seen = value.bytes.value;
    return value;
}

double rollup_sort_value(enum rollup_sort sort, const struct rollup_values *v)
{
    if (sort == ROLLUP_SORT_AGE)
        return (double)v->oldest_ns;
    const enum rollup_metric m = rollup_sort_metric(sort);
    if (sort == ROLLUP_SORT_ALLOCATIONS)
        return v->of[m].count.value;
    return m == ROLLUP_REQUESTED ? v->requested_bytes
           : m == ROLLUP_SLACK   ? v->of[ROLLUP_ALLOCATED].bytes.value - v->requested_bytes
                                 : v->of[m].bytes.value;
}

struct largest {
    const struct rollup_options *like;
    bool *shown; /* by image */
};

static bool is_of_shown(void *arg, const struct profile *p, uint32_t cell)
{
    const struct largest *l = arg;
    return l->shown[p->cells.at[cell].image] && (!l->like->keep || l->like->keep(l->like->arg, p, cell));
}

/* The first rollup, of all rows, computes only the value that determines the order. The second computes all values, for
 * the first `n` rows only. That value is the same in both, so they have these rows in the same order. */
struct rollup *rollup_largest_processes(const struct profile *p, const struct rollup_options *like, size_t n)
{
    struct rollup_options o = *like;
    struct largest l = {like, mem_array(p->images.len, sizeof(*l.shown))};
    o.group = ROLLUP_BY_PROCESS;
    o.without = ~(1u << rollup_sort_metric(o.sort) | (o.sort == ROLLUP_SORT_AGE ? 1u << ROLLUP_AGES : 0) |
                  (o.sort == ROLLUP_SORT_SLACK ? 1u << ROLLUP_ALLOCATED : 0));
    struct rollup *all = rollup_new(p, &o);
    n = n < all->rows.len ? n : all->rows.len;
    for (size_t i = 0; i < n; i++)
        l.shown[all->rows.at[i].index] = true;
    o.without = 0;
    o.keep = is_of_shown;
    o.arg = &l;
    struct rollup *few = o.keep_sample ? NULL : rollup_new(p, &o);
    for (size_t i = 0; i < n && few; i++) {
        assert(few->rows.at[i].index == all->rows.at[i].index);
        all->rows.at[i].self = few->rows.at[i].self;
        all->rows.at[i].inclusive = few->rows.at[i].inclusive;
    }
    rollup_free(few);
    free(l.shown);
    all->options = *like;
    all->options.group = ROLLUP_BY_PROCESS;
    return all;
}
