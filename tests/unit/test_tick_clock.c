/* SPDX-License-Identifier: BSD-2-Clause */
/* From ticks to nanoseconds, on simulated clocks: a constant rate, one that changes, anchors that are wide. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "collect/trace/tick_clock.h"

#define HZ       2600000000.0
#define START_NS UINT64_C(40000000000000)
#define NOISE_NS 15

/* The real relation of the two clocks: the rate changes at `change_s` from one to the other, both in parts per million.
 */
struct simulated {
    double ppm, later_ppm, change_s;
};

static uint64_t seed = 1;

static double noise(void)
{
    seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (double)(seed >> 40) / (1 << 24) * 2 * NOISE_NS - NOISE_NS;
}

/* The ticks at `s` seconds by CLOCK_MONOTONIC. */
static uint64_t ticks_at(const struct simulated *m, double s)
{
    const double first = s < m->change_s ? s : m->change_s, rest = s - first;
    return (UINT64_C(1) << 50) +
           (uint64_t)(int64_t)(HZ * (first / (1 + m->ppm * 1e-6) + rest / (1 + m->later_ppm * 1e-6)));
}

static uint64_t ns_at(double s)
{
    return START_NS + (uint64_t)(int64_t)(s * 1e9);
}

static struct tick_anchor anchor_at(const struct simulated *m, double s)
{
    return (struct tick_anchor){ticks_at(m, s) + (uint64_t)(int64_t)(noise() * HZ * 1e-9), ns_at(s), 60};
}

/* Follows the clock for 30 s; the largest error outside of `calm` seconds after the change, and inside. */
static void follow(const struct simulated *m, double calm, double *quiet, double *change,
                   struct tick_clock *c)
{
    uint64_t last = 0;
    *quiet = *change = 0;
    tick_clock_init(c, anchor_at(m, 0), anchor_at(m, 0.01));
    for (double s = 0.01; s < 30; s += 0.0005) {
        if (ns_at(s) - c->last.ns >= tick_clock_wait_ns(c))
            tick_clock_add(c, anchor_at(m, s));
        for (int k = -2; k <= 0;
             k++) { /* events since the last round, the first one a ns after the last one of that */
            const double at = k == -2 ? s - 0.0005 + 1e-9 : s + k * 0.0001;
            const uint64_t ns = tick_clock_ns(c, ticks_at(m, at));
            const double error = (double)(int64_t)(ns - ns_at(at));
            double *to = at > m->change_s && at < m->change_s + calm ? change : quiet;
            *to = *to < error ? error : *to < -error ? -error : *to;
            assert_true(ns >= last);
            last = ns;
        }
    }
}

static void constant(void **state)
{
    static const double rates[] = {0, 500, -500, 3};
    for (size_t k = 0; k < sizeof(rates) / sizeof(*rates); k++) {
        struct tick_clock c;
        double quiet, change;
        follow(&(struct simulated){rates[k], rates[k], 1e9}, 0, &quiet, &change, &c);
        print_message("%g ppm: %g ns off, residual %g ns\n", rates[k], quiet, c.residual_ns);
        assert_true(quiet <= 100 && c.residual_ns <= TICK_CLOCK_BOUND_NS);
    }
    (void)state;
}

/* The rate changes between two anchors: the residual says by how much times were wrong, anchors become dense, and two
 * anchors later times are right again. Converted times never go back. */
static void changing(void **state)
{
    struct tick_clock c;
    double quiet, change;
    follow(&(struct simulated){10, 60, 10.3}, 1.2, &quiet, &change, &c);
    print_message("change of 50 ppm: %g ns off for a second, %g ns before and later, residual %g ns\n",
                  change, quiet, c.residual_ns);
    assert_true(change > 1000 && change <= 60000);
    assert_true(c.residual_ns > 1000 && quiet <= 200);
    (void)state;
}

static void waits(void **state)
{
    const struct simulated m = {0, 0, 1e9};
    struct tick_clock c;
    double s = 0.01;
    tick_clock_init(&c, anchor_at(&m, 0), anchor_at(&m, s));
    for (int k = 0; k < 20; k++) {
        const uint64_t wait = tick_clock_wait_ns(&c);
        assert_true(wait >= 10000000 - 100 && wait <= 1000000000 && (double)wait <= s * 1e9 + 100);
        s += (double)wait / 1e9;
        tick_clock_add(&c, anchor_at(&m, s));
    }
    assert_int_equal(tick_clock_wait_ns(&c), 1000000000);
    struct tick_anchor jumped = anchor_at(&m, s + 1);
    jumped.ns += 5000;
    tick_clock_add(&c, jumped);
    assert_int_equal(tick_clock_wait_ns(&c), 10000000);
    tick_clock_add(&c, c.first); /* one that is not later is left out */
    assert_int_equal(c.last.ns, jumped.ns);
    /* for a second after the last anchor that was off, and then more rarely again */
    unsigned dense = 0;
    for (s += 1; tick_clock_wait_ns(&c) == 10000000 && dense < 1000; dense++) {
        struct tick_anchor later = anchor_at(&m, s += 0.01);
        later.ns += 5000;
        tick_clock_add(&c, later);
    }
    print_message("%u anchors 10 ms apart\n", dense);
    assert_true(dense >= 100 && dense <= 103);
    assert_true(tick_clock_wait_ns(&c) > 900000000);
    (void)state;
}

/* All anchors are known: the line between two. */
static void between(void **state)
{
    static const struct simulated clocks[] = {{500, 500, 1e9}, {-500, -500, 1e9}, {10, 60, 10.0}};
    for (size_t k = 0; k < sizeof(clocks) / sizeof(*clocks); k++) {
        struct tick_anchor anchors[21];
        double worst = 0;
        for (int i = 0; i < 21; i++)
            anchors[i] = anchor_at(&clocks[k], i);
        for (double s = -0.5; s < 20.5; s += 0.003) {
            const double error =
                (double)(int64_t)(tick_clock_between(anchors, 21, ticks_at(&clocks[k], s)) - ns_at(s));
            worst = worst < error ? error : worst < -error ? -error : worst;
        }
        print_message("%g ppm: %g ns off, residual %g ns\n", clocks[k].ppm, worst,
                      tick_clock_residual(anchors, 21));
        assert_true(worst <= 100);
        assert_true((tick_clock_residual(anchors, 21) > TICK_CLOCK_BOUND_NS) == (k == 2));
    }
    (void)state;
}

/* The clocks of this machine: an anchor is where the clock is. */
static double past_error(const struct simulated *m, const struct tick_clock *c, double from_s, double to_s)
{
    double most = 0;
    for (double s = from_s; s < to_s; s += 0.0007) {
        const double error = (double)(int64_t)(tick_clock_ns(c, ticks_at(m, s)) - ns_at(s));
        most = error > most ? error : -error > most ? -error : most;
    }
    return most;
}

static void past(void **state)
{
    (void)state;
    const struct simulated m = {20, 400, 10};
    struct tick_anchor left[22];
    struct tick_clock c;
    for (int k = 0; k < 21; k++)
        left[k] = anchor_at(&m, k);
    struct tick_anchor now = anchor_at(&m, 20000);
    assert_true(tick_clock_init_past(&c, left, 21, now));
    assert_int_equal(c.n_past, 22);
    assert_true(past_error(&m, &c, 0, 21) < TICK_CLOCK_BOUND_NS);
    /* the machine was suspended for an hour */
    now.ticks += (uint64_t)(3600 * HZ);
    assert_true(tick_clock_init_past(&c, left, 21, now));
    assert_int_equal(c.n_past, 21);
    assert_true(past_error(&m, &c, 0, 21) < TICK_CLOCK_BOUND_NS);
    /* one anchor, as of a program that has just begun, and now; then anchors that lie in the future */
    assert_true(tick_clock_init_past(&c, left, 1, anchor_at(&m, 5)));
    assert_true(past_error(&m, &c, 0, 5) < TICK_CLOCK_BOUND_NS);
    assert_false(tick_clock_init_past(&c, left + 1, 1, anchor_at(&m, 0.5)));
    assert_false(tick_clock_init_past(&c, left, 0, now));
}

static void real(void **state)
{
    struct tick_anchor anchors[2] = {tick_clock_anchor()};
    for (volatile int k = 0; k < 30000000; k++)
        ;
    anchors[1] = tick_clock_anchor();
    const struct tick_anchor now = tick_clock_anchor();
    const int64_t off = (int64_t)(tick_clock_between(anchors, 2, now.ticks) - now.ns);
    print_message("%ld ns off\n", (long)off);
    assert_true(off < 1000 && off > -1000);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constant), cmocka_unit_test(changing), cmocka_unit_test(waits),
        cmocka_unit_test(between),  cmocka_unit_test(past),     cmocka_unit_test(real),
    };
    return cmocka_run_group_tests_name("tick_clock", tests, NULL, NULL);
}
