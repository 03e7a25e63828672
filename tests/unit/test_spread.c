/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * src/model/profile/spread.h and diffs of several captures, by simulation of captures whose spread is known: intervals
 * hold the truth as often as they say, and rows in which nothing has changed are rarely reported.
 */
#include "model/profile/spread.h"

#include "model/profile/diff_power.h"
#include "test_diff.h"

#define RUNS        8000
#define CAPTURES    10
#define ROWS        200
#define COMPARISONS 400

static double normal(uint64_t *state)
{
    double u = draw(state), v = draw(state);
    return sqrt(-2 * log(1 - u)) * cos(2 * M_PI * v);
}

static double uniform(uint64_t *state)
{
    return (draw(state) - 0.5) * sqrt(12); /* of variance 1 */
}

/* ---- Student's distribution ---- */

static double density(double t, double freedom)
{
    return exp(lgamma((freedom + 1) / 2) - lgamma(freedom / 2) - (freedom + 1) / 2 * log1p(t * t / freedom)) /
           sqrt(freedom * M_PI);
}

static void quantiles_are_those_of_student(void **state)
{
    /* Of published tables; the first two are tan(0.475 pi) and 0.95 sqrt(2 / (1 - 0.95^2)) too. */
    static const struct {
        double tail, freedom, t;
    } of[] = {{0.025, 1, 12.70620474}, {0.025, 2, 4.302652730},  {0.025, 4, 2.776445105},
              {0.05, 5, 2.015048373},  {0.025, 30, 2.042272456}, {0.0005, 3, 12.92397864},
              {0.005, 10, 3.169272673}};
    (void)state;
    for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++)
        assert_float_equal(spread_student_quantile(of[i].tail, of[i].freedom) / of[i].t, 1, 1e-8);
    /* Between whole degrees: the density, summed up to the quantile, is the rest. */
    for (double freedom = 1.3; freedom < 50; freedom *= 1.7)
        for (double tail = 0.2; tail > 1e-5; tail /= 7) {
            double t = spread_student_quantile(tail, freedom), sum = 0;
            for (int k = 0; k < 40000; k++)
                sum += density((k + 0.5) * t / 40000, freedom) * t / 40000;
            assert_float_equal(0.5 - sum, tail, 1e-7);
            assert_float_equal(spread_student_tail(t, freedom) / tail, 1, 1e-9);
        }
    assert_float_equal(spread_student_tail(0, 3), 0.5, 1e-15);
    assert_true(spread_student_tail(1e200, 3) == 0 && spread_student_tail(1e60, 2) > 0);
}

/* ---- two sides ---- */

static void a_difference_by_hand(void **state)
{
    const double before[] = {10, 12, 14}, after[] = {20, 21, 22, 25};
    struct spread_change c = spread_compare(before, 3, after, 4, 1);
    double v = 4.0 / 3, w = 14.0 / 3 / 4;
    (void)state;
    assert_float_equal(c.value, 10, 1e-12);
    assert_float_equal(c.error, sqrt(v + w), 1e-12);
    assert_float_equal(c.freedom, (v + w) * (v + w) / (v * v / 2 + w * w / 3), 1e-12);
    struct interval i = spread_interval(&c, SPREAD_TAIL);
    assert_float_equal(i.high - i.low, 2 * c.error * spread_student_quantile(0.025, c.freedom), 1e-12);
    assert_float_equal(spread_student_quantile(spread_chance(&c) / 2, c.freedom), c.value / c.error, 1e-6);
    /* one capture varies as the others do */
    c = spread_compare(before, 3, after, 1, 1);
    assert_float_equal(c.error, sqrt(4 + 4.0 / 3), 1e-12);
    assert_float_equal(c.freedom, 2, 1e-12);
    /* after less half of before */
    c = spread_compare(before, 3, after, 4, 0.5);
    assert_float_equal(c.value, 16, 1e-12);
    assert_float_equal(c.error, sqrt(v / 4 + w), 1e-12);
}

static void constants_have_no_width(void **state)
{
    const double third = 1.0 / 3, before[] = {third, third, third}, after[] = {0.7, 0.7, 0.7};
    struct spread_change c = spread_compare(before, 3, after, 3, 1);
    struct interval i = spread_interval(&c, 1e-6);
    (void)state;
    assert_true(c.error == 0 && i.low == i.high && i.low == 0.7 - third && spread_chance(&c) == 0);
    c = spread_compare(before, 3, before, 3, 1);
    assert_true(c.value == 0 && spread_chance(&c) == 1);
    assert_true(spread_smallest_growth(&c) == 0 && spread_mean(before, 3) == third);
}

static double coverage(uint64_t *seed, uint32_t n_before, uint32_t n_after, double sigma,
                       double (*error)(uint64_t *))
{
    int held = 0;
    for (int run = 0; run < RUNS; run++) {
        double before[CAPTURES], after[CAPTURES];
        for (uint32_t k = 0; k < n_before; k++)
            before[k] = 100 + error(seed);
        for (uint32_t k = 0; k < n_after; k++)
            after[k] = 107 + sigma * error(seed);
        struct spread_change c = spread_compare(before, n_before, after, n_after, 1);
        struct interval i = spread_interval(&c, SPREAD_TAIL);
        held += i.low <= 7 && 7 <= i.high;
    }
    return (double)held / RUNS;
}

static void intervals_hold_the_truth(void **state)
{
    static const uint32_t sizes[][2] = {{2, 2}, {2, 5}, {3, 3}, {3, 8}, {5, 5}, {10, 10}, {8, 3}};
    uint64_t seed = 1947;
    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
        for (double sigma = 0.25; sigma < 5; sigma *= 4)
            for (int shape = 0; shape < 2; shape++) {
                double of = coverage(&seed, sizes[i][0], sizes[i][1], sigma, shape ? uniform : normal);
                if (of < 0.84 || of > 0.99 || (sizes[i][0] > 2 && of < 0.90))
                    fail_msg("%u and %u captures, sigma %g, shape %d: %.4f", sizes[i][0], sizes[i][1], sigma,
                             shape, of);
            }
    /* a single capture, of the same spread */
    double of = coverage(&seed, 5, 1, 1, normal);
    if (of < 0.945 || of > 0.955)
        fail_msg("5 captures and one: %.4f", of);
}

static void growth_is_found_as_often_as_promised(void **state)
{
    uint64_t seed = 12;
    (void)state;
    for (uint32_t n = 3; n <= 10; n++) {
        /* of the spread that is typical: each side's variance is 1 */
        struct spread_change typical = {.error = sqrt(2.0 / n), .freedom = 2 * n - 2};
        double growth = spread_smallest_growth(&typical);
        int found = 0;
        for (int run = 0; run < RUNS; run++) {
            double before[CAPTURES], after[CAPTURES];
            for (uint32_t k = 0; k < n; k++) {
                before[k] = normal(&seed);
                after[k] = growth + normal(&seed);
            }
            struct spread_change c = spread_compare(before, n, after, n, 1);
            found += spread_interval(&c, SPREAD_TAIL).low > 0;
        }
        if (found < (n > 3 ? 0.92 : 0.88) * RUNS || found > 0.98 * RUNS)
            fail_msg("%u captures: %.3f found", n, (double)found / RUNS);
    }
    const double before[] = {-1, 0, 1}, after[] = {9, 10, 11};
    uint32_t n = spread_captures_for(before, 3, after, 3, 1);
    struct spread_change c = {.error = sqrt(2.0 / n), .freedom = 2 * n - 2};
    assert_true(n > 10 && n < 50 && spread_smallest_growth(&c) <= 1);
    c = (struct spread_change){.error = sqrt(2.0 / (n - 1)), .freedom = 2 * n - 4};
    assert_true(spread_smallest_growth(&c) > 1);
    assert_int_equal(spread_captures_for(before, 3, after, 3, 1e-9), 0);
}

/* ---- many rows ---- */

/* What came of comparisons of many rows, of which the first `changed` have changed. */
struct outcome {
    double any, share, missed,
        found; /* with a false row; mean shares: of false rows, of wrong intervals, of finds */
};

static struct outcome compare_rows(uint64_t *seed, uint32_t n, size_t changed, double change, bool together)
{
    struct outcome o = {0};
    for (int run = 0; run < COMPARISONS; run++) {
        struct spread_change rows[ROWS];
        double chances[ROWS], shared[2 * CAPTURES];
        for (uint32_t k = 0; k < 2 * n; k++)
            shared[k] = together ? normal(seed) : 0;
        for (size_t i = 0; i < ROWS; i++) {
            double of[2 * CAPTURES], scale = exp(3 * normal(seed)); /* rows are of different sizes */
            for (uint32_t k = 0; k < 2 * n; k++)
                of[k] = scale * (normal(seed) + shared[k] + (i < changed && k >= n ? change : 0));
            rows[i] = spread_compare(of, n, of + n, n, 1);
            rows[i].value /= scale;
            rows[i].error /= scale;
            chances[i] = spread_chance(&rows[i]);
        }
        double tail = spread_select(chances, ROWS);
        size_t selected = 0, wrong = 0, missed = 0;
        for (size_t i = 0; i < ROWS; i++) {
            struct interval in = spread_interval(&rows[i], tail);
            double truth = i < changed ? change : 0;
            if (in.low <= 0 && in.high >= 0)
                continue;
            selected++;
            wrong += i >= changed;
            missed += truth < in.low || truth > in.high;
        }
        o.any += wrong > 0;
        o.share += selected ? (double)wrong / (double)selected : 0;
        o.missed += selected ? (double)missed / (double)selected : 0;
        o.found += changed ? (double)(selected - wrong) / (double)changed : 0;
    }
    o.any /= COMPARISONS;
    o.share /= COMPARISONS;
    o.missed /= COMPARISONS;
    o.found /= COMPARISONS;
    return o;
}

static void false_alarms_are_bounded(void **state)
{
    uint64_t seed = 1995;
    (void)state;
    for (int together = 0; together < 2; together++)
        for (uint32_t n = 3; n <= 5; n += 2) {
            struct outcome o = compare_rows(&seed, n, 0, 0, together);
            if (o.any > 0.05 + 3 * sqrt(0.05 * 0.95 / COMPARISONS))
                fail_msg("nothing changed, %u captures: a row was reported in %.3f", n, o.any);
            o = compare_rows(&seed, n, ROWS / 4, 100, together);
            if (o.share > 0.05 || o.missed > 0.06 || o.found < 0.95)
                fail_msg("a quarter changed, %u captures: false %.3f, missed %.3f, found %.3f", n, o.share,
                         o.missed, o.found);
        }
}

static void a_row_is_selected_if_its_interval_says_so(void **state)
{
    double chances[] = {0.9, 0.001, 0.02, 0.012, 0.04, 0.3};
    (void)state;
    /* sorted: 0.001 0.012 0.02 0.04 0.3 0.9; limits: 0.0083 0.0167 0.025 0.033 0.042 0.05 */
    assert_float_equal(spread_select(chances, 6), 0.025 * 3 / 6, 1e-15);
    double none[] = {0.5, 0.2};
    assert_float_equal(spread_select(none, 2), 0.025 / 2, 1e-15);
    assert_float_equal(spread_select(NULL, 0), SPREAD_TAIL, 1e-15);
}

/* The worst case that the header names. */
static void figures_of_two_values_look_constant_by_chance(void **state)
{
    uint64_t seed = 64;
    int changed = 0;
    (void)state;
    for (int run = 0; run < RUNS; run++) {
        double of[6];
        for (int k = 0; k < 6; k++)
            of[k] = draw(&seed) < 0.5;
        struct spread_change c = spread_compare(of, 3, of + 3, 3, 1);
        changed += !(c.freedom > 0) && c.value != 0;
    }
    assert_float_equal((double)changed / RUNS, 2.0 / 64, 0.005);
}

/* ---- profiles ---- */

/* A capture: the first moment of a run of its own. */
static struct profile *capture(uint64_t *seed, const struct fate *fates, size_t n, uint64_t period)
{
    static uint64_t id = 1000;
    struct profile *at[2];
    simulate(at, seed, fates, n, period, COMPLETE);
    profile_free(at[1]);
    at[0]->images.at[0].id = ++id;
    return at[0];
}

struct captures {
    const struct profile *at[2][CAPTURES];
    struct diff *d;
};

/* Captures before have `stayed` objects of each fate, more or less; those after have `added` more. */
static struct captures compare_captures(uint64_t *seed, const struct fate *fates, size_t n_fates, uint32_t n,
                                        uint64_t period, double spread)
{
    struct captures c = {.d = NULL};
    for (int side = 0; side < 2; side++)
        for (uint32_t k = 0; k < n; k++) {
            struct fate of[4];
            for (size_t i = 0; i < n_fates; i++) {
                of[i] = fates[i];
                of[i].freed = of[i].passed = of[i].added = 0;
                of[i].stayed =
                    (uint32_t)(fates[i].stayed * (1 + spread * normal(seed)) + side * fates[i].added);
            }
            c.at[side][k] = capture(seed, of, n_fates, period);
        }
    struct diff_side sides[2] = {{.captures = c.at[0], .n = n}, {.captures = c.at[1], .n = n}};
    c.d = diff_new_of(sides, &(struct diff_options){.group = ROLLUP_BY_STACK});
    /* the sides and their arrays belong to the caller, and `c` moves */
    c.d->side[0].captures = c.d->side[1].captures = NULL;
    return c;
}

static void release_captures(struct captures *c, uint32_t n)
{
    diff_free(c->d);
    for (int side = 0; side < 2; side++)
        for (uint32_t k = 0; k < n; k++)
            profile_free((struct profile *)c->at[side][k]);
}

static const struct fate places[] = {
    {PARSE, 4096, 4000, 0, 400, 0}, {CACHE, 200, 90000, 0, 0, 0}, {WALK, 1024, 20000, 0, 0, 0}};

static void exact_captures_have_the_interval_of_their_spread(void **state)
{
    uint64_t seed = 6;
    (void)state;
    struct captures c = compare_captures(&seed, places, 3, 3, 1, 0.01);
    const struct diff_value *live = &c.d->total[ROLLUP_LIVE];
    double sums[6];
    for (int k = 0; k < 6; k++) {
        const struct profile *p = c.at[k / 3][k % 3];
        sums[k] = 0;
        vec_each (const struct profile_cell, cell, &p->cells)
            sums[k] += cell->allocated.bytes - cell->freed.bytes;
        assert_float_equal(live->captures[DIFF_BYTES][k], sums[k], 1e-6);
    }
    struct spread_change want = spread_compare(sums, 3, sums + 3, 3, 1);
    struct interval i = spread_interval(&want, SPREAD_TAIL);
    struct diff_change have = diff_change(live, false);
    assert_float_equal(have.value, want.value, 1e-6);
    assert_float_equal(have.interval.low, i.low, 1e-6);
    assert_float_equal(have.interval.high, i.high, 1e-6);
    assert_float_equal(live->of[DIFF_BEFORE].bytes.value, spread_mean(sums, 3), 1e-6 * sums[0]);
    assert_float_equal(diff_least_excess(live, false, 0), i.low, 1e-6);
    assert_float_equal(diff_smallest_growth(live, false), spread_smallest_growth(&want), 1e-6);
    release_captures(&c, 3);
}

static void captures_that_are_alike_differ_for_certain(void **state)
{
    uint64_t seed = 7;
    (void)state;
    struct captures c = compare_captures(&seed, places, 3, 3, 1, 0);
    assert_int_equal(c.d->rows.len, 1);
    assert_int_equal(c.d->certain, 1);
    assert_int_equal(c.d->unchanged, 2);
    assert_float_equal(c.d->rows.at[0].change.value, 400 * 4096, 1e-6);
    assert_true(c.d->rows.at[0].change.interval.low == c.d->rows.at[0].change.interval.high);
    release_captures(&c, 3);
}

/* Sampled captures: what they vary by has the error of sampling. Where hardly anything is sampled, they may be alike by
 * chance, and the interval of sampling holds. */
static void sampled_captures_hold_the_truth(void **state)
{
    static const struct fate few[] = {{PARSE, 4096, 200, 0, 0, 0}};
    uint64_t seed = 9;
    double alarms = 0;
    int held = 0, certain = 0, runs = 300;
    (void)state;
    for (int run = 0; run < runs; run++) {
        struct captures c = compare_captures(&seed, places, 3, 3, 64 * KIB, 0.02);
        struct diff_change live = diff_change(&c.d->total[ROLLUP_LIVE], false);
        held += live.interval.low <= 400 * 4096 && 400 * 4096 <= live.interval.high;
        size_t wrong = 0;
        vec_each (const struct diff_row, row, &c.d->rows) {
            wrong += !diff_is_noise(&row->change) && strcmp(row->name, "value_new");
        }
        alarms += c.d->certain ? (double)wrong / (double)c.d->certain : 0;
        release_captures(&c, 3);
        c = compare_captures(&seed, few, 1, 3, 512 * KIB, 0);
        certain += c.d->certain > 0;
        release_captures(&c, 3);
    }
    if (held < 0.94 * runs || alarms > 0.06 * runs || certain > 0.02 * runs)
        fail_msg("held %d, false rows %.1f, false rows of few samples %d, of %d", held, alarms, certain,
                 runs);
}

static void divided_figures_are_rates(void **state)
{
    static const struct fate fates[] = {{PARSE, 4096, 1000, 0, 0, 0}},
                             more[] = {{PARSE, 4096, 3000, 0, 0, 0}};
    uint64_t seed = 8;
    const double divisors[] = {10, 20};
    const struct profile *one = capture(&seed, fates, 1, 1), *other = capture(&seed, more, 1, 1);
    struct diff_side sides[2] = {{.captures = &one, .n = 1, .divisors = &divisors[0]},
                                 {.captures = &other, .n = 1, .divisors = &divisors[1]}};
    struct diff *d = diff_new_of(sides, &(struct diff_options){.group = ROLLUP_BY_STACK});
    struct diff_change c = diff_change(&d->total[ROLLUP_LIVE], false);
    uint32_t first, second;
    (void)state;
    assert_float_equal(c.value, 4096 * (3000 / 20.0 - 1000 / 10.0), 1e-6);
    assert_true(c.interval.low == c.interval.high);
    assert_int_equal(d->certain, 1);
    assert_false(diff_shared_image(sides, &first, &second));
    sides[1].captures = &one;
    assert_true(diff_shared_image(sides, &first, &second) && first == 0 && second == 1);
    diff_free(d);
    profile_free((struct profile *)one);
    profile_free((struct profile *)other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles_are_those_of_student),
        cmocka_unit_test(a_difference_by_hand),
        cmocka_unit_test(constants_have_no_width),
        cmocka_unit_test(intervals_hold_the_truth),
        cmocka_unit_test(growth_is_found_as_often_as_promised),
        cmocka_unit_test(false_alarms_are_bounded),
        cmocka_unit_test(a_row_is_selected_if_its_interval_says_so),
        cmocka_unit_test(figures_of_two_values_look_constant_by_chance),
        cmocka_unit_test(exact_captures_have_the_interval_of_their_spread),
        cmocka_unit_test(captures_that_are_alike_differ_for_certain),
        cmocka_unit_test(sampled_captures_hold_the_truth),
        cmocka_unit_test(divided_figures_are_rates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
