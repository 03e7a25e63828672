/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * src/model/estimate: the gamma quantile against a table, the interval against exact ones (Garwood's for a Poisson
 * mean) and against exact coverage, the sums made from cells against sums over samples, and what must always hold.
 */
#include "model/profile/estimate.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define PERIOD       (512.0 * 1024)

enum figure { BYTES, OBJECTS };

static void assert_near(double got, double want, double relative)
{
    if (!(fabs(got - want) <= relative * fabs(want)))
        fail_msg("got %.12g, want %.12g within %g of it", got, want, relative);
}

static double weight(double size, double period)
{
    return -1 / expm1(-size / period);
}

static struct estimate_cell cell_of(uint64_t samples, double size, double period)
{
    double k = (double)samples, w = period > 1 ? weight(size, period) : 1;

    return (struct estimate_cell){samples, k * size, k * size * w, k * w, period};
}

static void add(struct estimate *e, enum figure figure, const struct estimate_cell *cell)
{
    struct estimate both[] = {[BYTES] = *e, [OBJECTS] = *e};
    estimate_add_cell(&both[BYTES], &both[OBJECTS], cell);
    (figure == BYTES ? estimate_add_cell_bytes : estimate_add_cell_count)(e, cell);
    assert_memory_equal(e, &both[figure], sizeof(*e));
}

static void add_samples(struct estimate *e, enum figure figure, uint64_t samples, double size, double period)
{
    struct estimate_cell cell = cell_of(samples, size, period);

    add(e, figure, &cell);
}

static struct interval interval_of(enum figure figure, uint64_t samples, double size, double period)
{
    struct estimate e = {0};

    add_samples(&e, figure, samples, size, period);
    return estimate_interval(&e);
}

/* xorshift64*; uniform in (0, 1). */
static double draw(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return ((double)((*state * 0x2545f4914f6cdd1dull) >> 11) + 0.5) * 0x1p-53;
}

/* A cell of random samples, their sizes anywhere in one octave of 1 byte to 32 MiB. */
static struct estimate_cell draw_cell(uint64_t *state, double period)
{
    struct estimate_cell cell = {.period = period};
    double octave = exp2(floor(draw(state) * 25));

    for (int left = (int)(draw(state) * 20); left > 0; left--) {
        double size = floor(octave * (1 + draw(state))), w = period > 1 ? weight(size, period) : 1;

        cell.samples++;
        cell.seen += size;
        cell.bytes += size * w;
        cell.count += w;
    }
    return cell;
}

/* Computed with 50 digits from the series of the incomplete gamma function and by bisection. */
static const struct {
    double shape, lower, upper;
} quantiles[] = {
    {0.01, 3.522685997313746e-161, 0.04713795843159044}, {0.3, 3.185679031739167e-06, 1.900263642838826},
    {0.5, 0.000491034558587628, 2.511943093657445},      {1, 0.02531780798428988, 3.688879454113936},
    {3, 0.6186721228956013, 7.224687667723961},          {5, 1.62348639011842, 10.2415886754037},
    {10, 4.795388696132433, 17.08480345141917},          {30, 20.24087402142091, 41.6488374385866},
    {50, 37.11096373746187, 64.7805985929183},           {100, 81.36399125092314, 120.5289477531555},
    {1000, 938.9730184076952, 1062.921151224888},        {20000, 19723.76760060705, 20278.12669846333},
};

static void the_gamma_quantile_agrees_with_a_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(quantiles); i++) {
        assert_near(estimate_gamma_quantile(quantiles[i].shape, false), quantiles[i].lower, 1e-7);
        assert_near(estimate_gamma_quantile(quantiles[i].shape, true), quantiles[i].upper, 1e-7);
    }
}

static void the_gamma_quantile_rises_with_the_shape_up_to_a_billion(void **state)
{
    double lower = 0, upper = 0;

    (void)state;
    assert_true(estimate_gamma_quantile(0, true) == 0);
    assert_true(estimate_gamma_quantile(NAN, true) == 0);
    assert_true(estimate_gamma_quantile(1e-12, true) == 0);
    for (double shape = 1e-4; shape < 1e9; shape *= 1.01) {
        double l = estimate_gamma_quantile(shape, false), u = estimate_gamma_quantile(shape, true);

        assert_true(l >= lower && u >= upper && u > l && isfinite(u));
        lower = l;
        upper = u;
    }
}

static void at_period_1_the_interval_is_the_value(void **state)
{
    (void)state;
    for (int figure = BYTES; figure <= OBJECTS; figure++) {
        struct interval i = interval_of(figure, 7, 100, 1);
        double want = figure == BYTES ? 700 : 7;

        assert_true(i.low == want && i.high == want);
        i = interval_of(figure, 0, 100, 1);
        assert_true(i.low == 0 && i.high == 0);
    }
}

static void an_empty_sum_is_zero_without_error(void **state)
{
    struct estimate none = {0};
    struct interval i = estimate_interval(&none);

    (void)state;
    assert_true(i.low == 0 && i.high == 0);
}

static void without_samples_bytes_may_reach_3_69_periods_and_a_count_that_in_8_byte_objects(void **state)
{
    struct interval bytes = interval_of(BYTES, 0, 0, PERIOD), objects = interval_of(OBJECTS, 0, 0, PERIOD);

    (void)state;
    assert_true(bytes.low == 0 && objects.low == 0);
    assert_near(bytes.high, -log(0.025) * PERIOD, 1e-9);
    assert_near(objects.high, -log(0.025) * PERIOD / ESTIMATE_SMALLEST, 1e-4);
}

static void exact_samples_do_not_hide_that_another_period_saw_nothing(void **state)
{
    (void)state;
    for (int figure = BYTES; figure <= OBJECTS; figure++) {
        struct estimate e = {0};
        struct interval i, nothing = interval_of(figure, 0, 0, PERIOD);

        add_samples(&e, figure, 5, 64, 1);
        add_samples(&e, figure, 0, 0, PERIOD);
        i = estimate_interval(&e);
        assert_true(i.low == e.seen && e.value == e.seen);
        assert_near(i.high, e.seen + nothing.high, 1e-12);
    }
}

static void an_empty_cell_changes_nothing_where_others_have_samples(void **state)
{
    (void)state;
    for (int figure = BYTES; figure <= OBJECTS; figure++) {
        struct estimate e = {0};
        struct interval before, after;

        add_samples(&e, figure, 4, 1000, PERIOD);
        before = estimate_interval(&e);
        add_samples(&e, figure, 0, 0, PERIOD);
        after = estimate_interval(&e);
        assert_true(before.low == after.low && before.high == after.high);
    }
}

/* Garwood's 95 % limits of a Poisson mean, as tabulated (e.g. Johnson, Kotz and Kemp): small objects weigh a period. */
static void small_objects_have_the_exact_interval_of_a_poisson_mean(void **state)
{
    static const struct {
        uint64_t samples;
        double low, high;
    } garwood[] = {{1, 0.0253, 5.5716},     {2, 0.2422, 7.2247},     {3, 0.6187, 8.7673},
                   {5, 1.6235, 11.6683},    {10, 4.7954, 18.3904},   {20, 12.2165, 30.8884},
                   {30, 20.2409, 42.8269},  {50, 37.1110, 65.9183},  {75, 58.9916, 94.0136},
                   {99, 80.4632, 120.5289}, {100, 81.3640, 121.6273}};

    (void)state;
    for (size_t i = 0; i < COUNT(garwood); i++) {
        struct interval bytes = interval_of(BYTES, garwood[i].samples, 8, PERIOD);
        struct interval objects = interval_of(OBJECTS, garwood[i].samples, 8, PERIOD);

        assert_float_equal(bytes.low / PERIOD, garwood[i].low, 0.002);
        assert_float_equal(bytes.high / PERIOD, garwood[i].high, 0.002);
        assert_float_equal(objects.low * 8 / PERIOD, garwood[i].low, 0.002);
        assert_float_equal(objects.high * 8 / PERIOD, garwood[i].high, 0.002);
    }
}

/* The chance that the interval holds the truth, over all numbers of samples that `objects` of one size may give. */
static double exact_coverage(enum figure figure, double size, double objects)
{
    double chance = 1 / weight(size, PERIOD), mean = objects * chance, covered = 0;
    double truth = figure == BYTES ? objects * size : objects;
    double first = fmax(0, floor(mean - 12 * sqrt(mean) - 5));
    double last = fmin(objects, mean + 12 * sqrt(mean) + 12);
    int sign;

    for (double k = first; k <= last; k++) {
        struct interval i = interval_of(figure, (uint64_t)k, size, PERIOD);
        double ways =
            lgamma_r(objects + 1, &sign) - lgamma_r(k + 1, &sign) - lgamma_r(objects - k + 1, &sign);

        if (i.low <= truth * (1 + 1e-12) && i.high >= truth * (1 - 1e-12))
            covered += exp(ways + k * log(chance) - (objects - k) * size / PERIOD);
    }
    return covered;
}

static void objects_of_one_size_are_covered_however_many_and_large(void **state)
{
    static const double sizes[] = {8, 64, 1000, 65536, 200000, 524288, 1000000, 2097152, 4194304};

    (void)state;
    for (int figure = BYTES; figure <= OBJECTS; figure++)
        for (size_t s = 0; s < COUNT(sizes); s++)
            for (double expected = 0.3; expected < 1200; expected *= 1.15) {
                double objects = ceil(expected * weight(sizes[s], PERIOD));
                double covered = exact_coverage(figure, sizes[s], objects);

                if (covered < 0.944 || (expected >= 100 && sizes[s] < PERIOD && covered > 0.965))
                    fail_msg("%g objects of %g bytes: coverage %.4f", objects, sizes[s], covered);
            }
}

static void a_stack_that_allocates_few_huge_buffers_has_no_error_but_the_unseen(void **state)
{
    static const double sizes[] = {8.0 * 1024 * 1024, 64.0 * 1024 * 1024};

    (void)state;
    for (size_t s = 0; s < COUNT(sizes); s++) {
        struct interval bytes = interval_of(BYTES, 10, sizes[s], PERIOD);
        struct interval objects = interval_of(OBJECTS, 10, sizes[s], PERIOD);

        assert_true(bytes.low == 10 * sizes[s]);
        assert_near(bytes.high - bytes.low, -log(0.025) * PERIOD, 0.02);
        assert_true(objects.low == 10);
        assert_near(objects.high, 10, 0.001);
    }
}

/* 8 MiB have a weight of 1 + 1.1e-7: an agent that rounds its sums may keep a part of that. */
static void a_cell_whose_excess_was_rounded_away_still_has_the_variance_of_its_size_class(void **state)
{
    double size = 8.0 * 1024 * 1024;
    struct estimate_cell cell = {3, 3 * size, 3 * size + 3, 3, PERIOD};
    struct estimate e = {0};

    (void)state;
    estimate_add_cell_bytes(&e, &cell);
    assert_near(e.variance, 3 * size, 1e-6);
}

static void a_sum_does_not_depend_on_how_its_cells_were_merged(void **state)
{
    uint64_t random = 7;

    (void)state;
    for (int figure = BYTES; figure <= OBJECTS; figure++)
        for (int round = 0; round < 200; round++) {
            struct estimate all = {0}, left = {0}, right = {0}, none = {0};
            struct interval a, b;

            for (int i = 0; i < 12; i++) {
                struct estimate_cell cell = draw_cell(&random, i % 3 ? PERIOD : i % 2 ? 65536 : 1);

                add(&all, figure, &cell);
                add(i % 5 ? &left : &right, figure, &cell);
            }
            estimate_merge(&right, &left);
            estimate_merge(&right, &none);
            assert_int_equal(all.samples, right.samples);
            assert_int_equal(all.exact, right.exact);
            assert_near(right.value, all.value, 1e-12);
            assert_near(right.variance, all.variance, 1e-12);
            a = estimate_interval(&all);
            b = estimate_interval(&right);
            assert_near(b.low, a.low, 1e-9);
            assert_near(b.high, a.high, 1e-9);
        }
}

static void merging_sums_without_samples_keeps_what_they_leave_open(void **state)
{
    (void)state;
    for (int figure = BYTES; figure <= OBJECTS; figure++) {
        struct interval nothing = interval_of(figure, 0, 0, PERIOD), i;
        struct estimate e = {0}, other = {0};

        add_samples(&other, figure, 0, 0, PERIOD);
        estimate_merge(&e, &other);
        i = estimate_interval(&e);
        assert_true(i.low == 0 && i.high == nothing.high);
    }
}

static void the_interval_is_never_below_what_was_seen_and_holds_the_value(void **state)
{
    static const double periods[] = {1, 2, 4096, 512.0 * 1024, 1e9};
    uint64_t random = 11;

    (void)state;
    for (int figure = BYTES; figure <= OBJECTS; figure++)
        for (int round = 0; round < 5000; round++) {
            struct estimate e = {0};
            struct interval i;

            for (int cells = round % 7; cells >= 0; cells--) {
                struct estimate_cell cell = draw_cell(&random, periods[(int)(draw(&random) * 5)]);

                add(&e, figure, &cell);
            }
            i = estimate_interval(&e);
            assert_true(isfinite(i.high) && i.low >= e.seen && i.low <= e.value && i.high >= e.value);
        }
}

static void sums_that_contradict_each_other_still_give_an_ordered_interval(void **state)
{
    static const struct estimate_cell damaged[] = {
        {3, 1000, 900, 2, PERIOD},  {3, 0, 0, 0, PERIOD},     {3, 1000, 1e9, 0, PERIOD},
        {1, 1e99, 1e99, 1, PERIOD}, {3, 0, 1e9, 1e9, PERIOD}, {1, 8, 1e6, 1, PERIOD},
        {0, 1e9, 1e9, 1e9, PERIOD}, {2, 64, 64, 2, NAN},
    };

    (void)state;
    for (int figure = BYTES; figure <= OBJECTS; figure++)
        for (size_t d = 0; d < COUNT(damaged); d++) {
            struct estimate e = {0};
            struct interval i;

            add(&e, figure, &damaged[d]);
            i = estimate_interval(&e);
            assert_true(i.low >= e.seen && i.low <= e.value && i.high >= e.value && isfinite(i.high));
        }
}

static void more_samples_raise_both_ends_and_narrow_the_interval(void **state)
{
    static const double sizes[] = {8, 100, 65536, 524288, 4194304};

    (void)state;
    for (int figure = BYTES; figure <= OBJECTS; figure++)
        for (size_t s = 0; s < COUNT(sizes); s++)
            for (uint64_t k = 1; k < 3000; k += 1 + k / 20) {
                struct interval a = interval_of(figure, k, sizes[s], PERIOD);
                struct interval b = interval_of(figure, k + 1 + k / 20, sizes[s], PERIOD);

                assert_true(b.low > a.low && b.high > a.high);
                assert_true((b.high - b.low) / b.high < (a.high - a.low) / a.high * (1 + 1e-9) ||
                            sizes[s] > PERIOD);
            }
}

static void a_longer_period_widens_the_interval_of_the_same_objects(void **state)
{
    double before = 0;

    (void)state;
    for (double period = 2048; period < 1e8; period *= 2) {
        double w = weight(1024, period), k = round(1e6 / w);
        struct interval i = interval_of(BYTES, (uint64_t)k, 1024, period);

        assert_true(i.high - i.low > before);
        before = i.high - i.low;
    }
}

/* The sums over samples that a cell's variance stands for, for two sizes in any proportion within a factor 2. */
static void the_variance_from_a_cell_is_close_to_that_from_its_samples(void **state)
{
    (void)state;
    for (double size = 1; size < 32 * PERIOD; size *= 2)
        for (double ratio = 1.0; ratio < 2.0; ratio += 0.0999)
            for (int share = 1; share < 100; share++) {
                double n[2] = {size, size * ratio}, k[2] = {share, 100 - share}, bytes = 0, objects = 0;
                struct estimate_cell cell = {.samples = 100, .period = PERIOD};
                struct estimate e[2] = {0};

                for (int i = 0; i < 2; i++) {
                    double w = weight(n[i], PERIOD), excess = 1 / expm1(n[i] / PERIOD);

                    cell.seen += k[i] * n[i];
                    cell.bytes += k[i] * n[i] * w;
                    cell.count += k[i] * w;
                    bytes += k[i] * n[i] * n[i] * w * excess;
                    objects += k[i] * w * excess;
                }
                estimate_add_cell_bytes(&e[0], &cell);
                estimate_add_cell_count(&e[1], &cell);
                if (size > 16 * PERIOD)
                    assert_true(e[0].variance < PERIOD && e[1].variance < 1e-5);
                else if (e[0].variance < 0.88 * bytes || e[0].variance > 1.001 * bytes ||
                         e[1].variance < 0.94 * objects || e[1].variance > 1.04 * objects)
                    fail_msg("%g and %g bytes, %d %%: bytes %.3f, count %.3f", n[0], n[1], share,
                             e[0].variance / bytes, e[1].variance / objects);
            }
}

static void a_count_reaches_further_where_sizes_spread_and_not_where_they_are_alike(void **state)
{
    struct estimate alike = {0}, spread = {0};
    struct interval i, j;

    (void)state;
    add_samples(&alike, OBJECTS, 20, 65536, PERIOD);
    add_samples(&alike, OBJECTS, 20, 65536, PERIOD);
    add_samples(&spread, OBJECTS, 40, 65536, PERIOD);
    add_samples(&spread, OBJECTS, 1, 4194304, PERIOD);
    i = estimate_interval(&alike);
    j = estimate_interval(&spread);
    assert_true(i.high < alike.value + 3 * sqrt(alike.variance));
    assert_true(j.high > i.high * 1.2);
    assert_true(j.high < i.high + 13 * 2 * weight(65536, PERIOD)); /* 13 octaves from 64 KiB to 8 B */
    assert_near(j.low - 1, i.low, 0.01);
}

static void a_count_that_saw_objects_of_8_bytes_or_less_reaches_no_further(void **state)
{
    (void)state;
    for (double size = 2; size <= 8; size *= 2) {
        struct estimate e = {0};
        struct interval alone = interval_of(OBJECTS, 20, size, PERIOD), i;

        add_samples(&e, OBJECTS, 20, size, PERIOD);
        add_samples(&e, OBJECTS, 3, 8388608, PERIOD);
        i = estimate_interval(&e);
        assert_near(i.high, alone.high + 3, 1e-6);
    }
}

static void a_count_of_objects_of_no_size_is_that_of_single_bytes(void **state)
{
    struct estimate_cell cells[] = {cell_of(2, 1, PERIOD), cell_of(2, 1, PERIOD)};
    struct interval i[2];

    (void)state;
    cells[1].seen = cells[1].bytes = 0;
    for (int c = 0; c < 2; c++) {
        struct estimate e = {0};

        add(&e, OBJECTS, &cells[c]);
        add_samples(&e, OBJECTS, 5, 65536, PERIOD);
        i[c] = estimate_interval(&e);
    }
    assert_true(i[0].low == i[1].low);
    assert_near(i[1].high, i[0].high, 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_gamma_quantile_agrees_with_a_table),
        cmocka_unit_test(the_gamma_quantile_rises_with_the_shape_up_to_a_billion),
        cmocka_unit_test(at_period_1_the_interval_is_the_value),
        cmocka_unit_test(an_empty_sum_is_zero_without_error),
        cmocka_unit_test(without_samples_bytes_may_reach_3_69_periods_and_a_count_that_in_8_byte_objects),
        cmocka_unit_test(exact_samples_do_not_hide_that_another_period_saw_nothing),
        cmocka_unit_test(an_empty_cell_changes_nothing_where_others_have_samples),
        cmocka_unit_test(small_objects_have_the_exact_interval_of_a_poisson_mean),
        cmocka_unit_test(objects_of_one_size_are_covered_however_many_and_large),
        cmocka_unit_test(a_stack_that_allocates_few_huge_buffers_has_no_error_but_the_unseen),
        cmocka_unit_test(a_cell_whose_excess_was_rounded_away_still_has_the_variance_of_its_size_class),
        cmocka_unit_test(a_sum_does_not_depend_on_how_its_cells_were_merged),
        cmocka_unit_test(merging_sums_without_samples_keeps_what_they_leave_open),
        cmocka_unit_test(the_interval_is_never_below_what_was_seen_and_holds_the_value),
        cmocka_unit_test(sums_that_contradict_each_other_still_give_an_ordered_interval),
        cmocka_unit_test(more_samples_raise_both_ends_and_narrow_the_interval),
        cmocka_unit_test(a_longer_period_widens_the_interval_of_the_same_objects),
        cmocka_unit_test(the_variance_from_a_cell_is_close_to_that_from_its_samples),
        cmocka_unit_test(a_count_reaches_further_where_sizes_spread_and_not_where_they_are_alike),
        cmocka_unit_test(a_count_that_saw_objects_of_8_bytes_or_less_reaches_no_further),
        cmocka_unit_test(a_count_of_objects_of_no_size_is_that_of_single_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
