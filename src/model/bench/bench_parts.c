/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/bench/bench_parts.h"

#include <math.h>

#define APART 0.1

static double median_of(const struct bench_result *result, size_t row)
{
    return bench_row_figures(result, &result->rows.at[row]).median;
}

void bench_parts_compute(struct bench_parts *p, const struct bench_result *result)
{
    const uint32_t events = result->rows.at[0].events_per_call;
    p->whole_ns = median_of(result, 0);
    p->sum_ns = 0;
    vec_each (struct bench_part, part, &p->list) {
        const double count = part->count * (part->is_for_each_event && events ? events : 1);
        const double less = part->less ? median_of(result, part->less) : 0;
        part->alone_ns = count * (median_of(result, part->alone) - less);
        part->gains_ns = part->without ? p->whole_ns - median_of(result, part->without) : NAN;
        p->sum_ns += part->alone_ns;
    }
    p->is_apart = fabs(p->whole_ns - p->sum_ns) > APART * p->whole_ns;
}
