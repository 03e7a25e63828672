/* SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/bench/order_statistics.h"

#define RUNS 20000

static double draw(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (double)((*seed >> 11) + 1) / 9007199254740993.0;
}

static void quantiles_are_figures_of_the_sample(void **state)
{
    double ten[] = {7, 3, 1, 9, 10, 2, 8, 4, 6, 5};
    (void)state;
    order_sort(ten, 10);
    for (int i = 0; i < 10; i++)
        assert_true(ten[i] == i + 1);
    assert_true(order_quantile(ten, 10, 0.9) == 9);
    assert_true(order_quantile(ten, 10, 0.91) == 10);
    assert_true(order_quantile(ten, 10, 0.99) == 10);
    assert_true(order_quantile(ten, 10, 0.5) == 5);
    assert_true(order_quantile(ten, 10, 0) == 1);
    assert_true(order_quantile(ten, 10, 1) == 10);
    assert_true(order_median(ten, 10) == 5.5);
    assert_true(order_median(ten, 9) == 5);
    assert_true(order_quantile(ten, 1, 0.99) == 1);
    assert_true(isnan(order_quantile(ten, 0, 0.5)) && isnan(order_median(ten, 0)));
}

/* Of uniform, exponential and two-valued figures, against the quantile of the distribution. */
static void percentiles_of_known_distributions(void **state)
{
    static double figures[100000];
    const size_t n = sizeof(figures) / sizeof(*figures);
    uint64_t seed = 90;
    (void)state;
    for (size_t i = 0; i < n; i++)
        figures[i] = draw(&seed);
    order_sort(figures, n);
    assert_float_equal(order_quantile(figures, n, 0.9), 0.9, 0.005);
    assert_float_equal(order_quantile(figures, n, 0.99), 0.99, 0.002);
    for (size_t i = 0; i < n; i++)
        figures[i] = -log(draw(&seed));
    order_sort(figures, n);
    assert_float_equal(order_median(figures, n), log(2), 0.02);
    assert_float_equal(order_quantile(figures, n, 0.9), log(10), 0.05);
    assert_float_equal(order_quantile(figures, n, 0.99), log(100), 0.2);
    for (size_t i = 0; i < n; i++)
        figures[i] = i % 20 ? 10 : 1000; /* 5 % are slow */
    order_sort(figures, n);
    assert_true(order_quantile(figures, n, 0.9) == 10 && order_quantile(figures, n, 0.95) == 10);
    assert_true(order_quantile(figures, n, 0.96) == 1000 && order_quantile(figures, n, 0.99) == 1000);
}

static void the_interval_of_the_median_by_hand(void **state)
{
    double figures[25];
    (void)state;
    for (int i = 0; i < 25; i++)
        figures[i] = i + 1;
    /* of 6 coins all fall alike with 2 / 64 = 3 %; of 5 with 6 % */
    struct interval i = order_median_interval(figures, 6);
    assert_true(i.low == 1 && i.high == 6);
    i = order_median_interval(figures, 5);
    assert_true(isinf(i.low) && isinf(i.high));
    /* tables of the sign test: n = 25, ranks 8 and 18 */
    i = order_median_interval(figures, 25);
    assert_true(i.low == 8 && i.high == 18);
    i = order_median_interval(figures, 0);
    assert_true(isinf(i.low) && isinf(i.high));
}

/* The distribution is skewed: log(2) is its median. */
static void the_interval_holds_the_median(void **state)
{
    static const size_t sizes[] = {6, 9, 20, 75};
    uint64_t seed = 7;
    (void)state;
    for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++) {
        int held = 0;
        for (int run = 0; run < RUNS; run++) {
            double figures[75];
            for (size_t i = 0; i < sizes[s]; i++)
                figures[i] = -log(draw(&seed));
            order_sort(figures, sizes[s]);
            const struct interval i = order_median_interval(figures, sizes[s]);
            held += i.low <= log(2) && log(2) <= i.high;
        }
        const double share = (double)held / RUNS;
        if (share < 0.945 || share > 0.99)
            fail_msg("%zu figures: %.4f", sizes[s], share);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles_are_figures_of_the_sample),
        cmocka_unit_test(percentiles_of_known_distributions),
        cmocka_unit_test(the_interval_of_the_median_by_hand),
        cmocka_unit_test(the_interval_holds_the_median),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
