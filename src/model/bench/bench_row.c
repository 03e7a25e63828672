/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/bench/bench_row.h"

#include <math.h>
#include <string.h>

#define P90 0.90
#define P99 0.99

void bench_row_init(struct bench_row *r, const char *mechanism, const char *sink, const char *floor,
                    unsigned threads)
{
    *r = (struct bench_row){.mechanism = mechanism, .sink = sink, .floor = floor};
    r->alone = (struct bench_batches){.threads = 1, .least_bare = INFINITY, .least = INFINITY};
    r->together = (struct bench_batches){.threads = threads, .least_bare = INFINITY, .least = INFINITY};
}

static void release_batches(struct bench_batches *b)
{
    vec_release(&b->bare);
    vec_release(&b->differences);
    vec_release(&b->turns);
}

static void release_shots(struct bench_shots *s)
{
    vec_release(&s->bare);
    vec_release(&s->with);
}

void bench_row_release(struct bench_row *r)
{
    release_batches(&r->alone);
    release_batches(&r->together);
    release_shots(&r->hot);
    release_shots(&r->isolated);
    release_shots(&r->cold);
    free(r->unavailable);
    r->unavailable = NULL;
}

static void release_rows(struct bench_rows *rows)
{
    vec_each (struct bench_row, r, rows)
        bench_row_release(r);
    vec_release(rows);
}

void bench_result_release(struct bench_result *r)
{
    release_rows(&r->floors);
    release_rows(&r->rows);
    bench_switchings_release(&r->switchings);
}

void bench_batches_add(struct bench_batches *b, double bare_ns, double ns, bool is_switched, bool is_apart)
{
    b->switched += is_switched;
    b->apart += is_apart && !is_switched;
    if (is_switched || is_apart)
        return;
    *vec_push(&b->differences) = ns - bare_ns;
    b->least_bare = fmin(b->least_bare, bare_ns);
    b->least = fmin(b->least, ns);
}

/* Sorts the figures. */
static double median_of(struct bench_numbers *n)
{
    order_sort(n->at, n->len);
    return order_median(n->at, n->len);
}

void bench_batches_end_turn(struct bench_batches *b)
{
    if (b->differences.len)
        *vec_push(&b->turns) = median_of(&b->differences);
    b->differences.len = 0;
}

void bench_shots_add(struct bench_shots *s, const uint32_t *bare_ns, const uint32_t *ns, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        *vec_push(&s->bare) = bare_ns[i];
        *vec_push(&s->with) = ns[i];
    }
}

static struct bench_numbers sorted_copy(const struct bench_numbers *n)
{
    struct bench_numbers copy = {NULL, 0, 0};
    vec_each (const double, x, n)
        *vec_push(&copy) = *x;
    order_sort(copy.at, copy.len);
    return copy;
}

/* Of calls timed one at a time, less the median of those without the mechanism; NAN: there are none. */
static double quantile_less_floor(const struct bench_shots *s, double share)
{
    struct bench_numbers bare = sorted_copy(&s->bare), with = sorted_copy(&s->with);
    const double quantile = share == 0.5 ? order_median(with.at, with.len)
                                         : order_quantile(with.at, with.len, share),
                 floor = order_median(bare.at, bare.len);
    vec_release(&bare);
    vec_release(&with);
    return fmax(quantile - floor, 0) + (isnan(quantile) ? NAN : 0);
}

static double floor_of(const struct bench_result *result, const char *name)
{
    vec_each (const struct bench_row, f, &result->floors)
        if (name && !strcmp(f->mechanism, name)) {
            struct bench_numbers turns = sorted_copy(&f->alone.turns);
            const double ns = order_median(turns.at, turns.len);
            vec_release(&turns);
            return ns;
        }
    return NAN;
}

struct bench_figures bench_row_figures(const struct bench_result *result, const struct bench_row *r)
{
    struct bench_numbers turns = sorted_copy(&r->alone.turns), together = sorted_copy(&r->together.turns);
    struct bench_figures f = {
        .least = turns.len ? fmax(r->alone.least - r->alone.least_bare, 0) : NAN,
        .median = order_median(turns.at, turns.len),
        .interval = order_median_interval(turns.at, turns.len),
        .p90 = quantile_less_floor(&r->hot, P90),
        .p99 = quantile_less_floor(&r->hot, P99),
        .isolated = quantile_less_floor(&r->isolated, 0.5),
        .cold = quantile_less_floor(&r->cold, 0.5),
        .together = order_median(together.at, together.len),
        .event_bytes = r->hits && r->bytes ? (double)r->bytes / (double)r->hits : NAN,
    };
    f.ratio = f.median / floor_of(result, r->floor);
    vec_release(&turns);
    vec_release(&together);
    return f;
}

uint64_t bench_row_missing(const struct bench_row *r)
{
    if (!r->knows_hits || r->expected <= r->hits + r->lost)
        return 0;
    return r->expected - r->hits - r->lost;
}
