/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/bench/bench_advice.h"

#include <math.h>
#include <string.h>

#define ISOLATED_RATE      1e5 /* rarer events find the caches as single calls do, one in 10 us */
#define BUFFER_LEAST_BYTES (4.0 * 1024 * 1024)
#define HELD_LEAST_S       0.5 /* a reader that the system lets wait for so long loses nothing */

/* The cost of an event at this rate; NAN: not known. */
static double event_ns(const struct bench_result *result, const struct bench_row *r, double rate)
{
    const struct bench_figures f = bench_row_figures(result, r);
    return fmax(rate < ISOLATED_RATE ? f.isolated : f.median, 0) /
               (r->events_per_call ? r->events_per_call : 1) +
           (isnan(f.median) ? NAN : 0);
}

static bool fits(const struct bench_row *r, uint32_t needs, enum bench_keeps keeps)
{
    return !r->unavailable && r->needs == needs && r->keeps == keeps && !r->lost && !bench_row_missing(r) &&
           strcmp(r->mechanism, "none") != 0; /* it cannot be switched off */
}

static void add(struct bench_advices *to, const struct bench_result *result, double rate, uint32_t needs,
                enum bench_keeps keeps)
{
    struct bench_advice best = {
        .needs = needs, .keeps = keeps, .event_ns = INFINITY, .buffer_bytes = NAN, .held_s = NAN};
    vec_each (const struct bench_row, r, &result->rows) {
        const double ns = fits(r, needs, keeps) ? event_ns(result, r, rate) : NAN;
        if (ns < best.event_ns) {
            best.row = r;
            best.event_ns = ns;
        }
    }
    if (!best.row)
        return;
    best.cpu = best.event_ns * rate / 1e9;
    const double bytes = bench_row_figures(result, best.row).event_bytes;
    if (keeps == BENCH_KEEPS_ORDER && bytes > 0) {
        best.buffer_bytes = BUFFER_LEAST_BYTES;
        while (best.buffer_bytes < bytes * rate * HELD_LEAST_S)
            best.buffer_bytes *= 2;
        best.held_s = best.buffer_bytes / (bytes * rate);
    }
    *vec_push(to) = best;
}

struct bench_advices bench_advice_find(const struct bench_result *result, double rate)
{
    static const uint32_t needs[] = {BENCH_NEEDS_REBUILD, BENCH_NEEDS_NOTHING, BENCH_NEEDS_ROOT,
                                     BENCH_NEEDS_ROOT | BENCH_OF_KERNEL};
    struct bench_advices found = {NULL, 0, 0};
    for (size_t i = 0; i < sizeof(needs) / sizeof(*needs); i++) {
        add(&found, result, rate, needs[i], BENCH_KEEPS_SUMS);
        add(&found, result, rate, needs[i], BENCH_KEEPS_ORDER);
    }
    return found;
}
