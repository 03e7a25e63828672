/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/bench/bench_switching.h"

#include "model/bench/order_statistics.h"

static double median_of(const uint32_t *ns, uint32_t n)
{
    struct VEC(double) sorted = {NULL, 0, 0};
    for (uint32_t i = 0; i < n; i++)
        *vec_push(&sorted) = ns[i];
    order_sort(sorted.at, sorted.len);
    const double median = order_median(sorted.at, sorted.len);
    vec_release(&sorted);
    return median;
}

struct bench_switching_figures bench_switching_median(const uint32_t *on_ns, const uint32_t *off_ns,
                                                      uint32_t n)
{
    return (struct bench_switching_figures){median_of(on_ns, n), median_of(off_ns, n)};
}

void bench_switchings_release(struct bench_switchings *s)
{
    vec_each (const struct bench_switching, it, s)
        free(it->unavailable);
    vec_release(s);
}
