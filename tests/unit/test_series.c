/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Growth against programs whose truth is known: simulated object by object, sampled as the agent samples, looked at as
 * watch looks. Rates of 100 seeded runs each are printed and held to bounds; then the bookkeeping, exactly.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/sigsafe/draw.h"
#include "model/profile/growth.h"
#include "query/alert.h"

#define RUNS   100
#define LOOKS  200
#define LENGTH 200.0 /* of a run, in looks */
#define OLD    2.0   /* --older-than, in looks */
#define LOOK   60e9  /* ns */
#define START  1700000000000000000u
#define MIB    (1024.0 * 1024)
#define NEVER  INFINITY
#define SEED   20000 /* of the first run: none that the constants of growth.c were chosen with (0 to 3999) */

/* ---- a program: objects with their times, in looks; only those sampled are kept ---- */

struct object {
    double born, freed;
    double size_bytes;
};

struct program {
    struct VEC(struct object) objects;
    uint64_t random;
    double period_bytes, size_bytes;
    double truth; /* bytes that became old between the first and the last look, and are never freed */
};

static double uniform(struct program *p)
{
    return ((double)(draw_next(&p->random) >> 11) + 0.5) * 0x1p-53;
}

static double exponential(struct program *p)
{
    return -log(uniform(p));
}

static void allocate(struct program *p, double born, double freed)
{
    if (uniform(p) < -expm1(-p->size_bytes / p->period_bytes))
        *vec_push(&p->objects) = (struct object){born, freed, p->size_bytes};
    if (isinf(freed) && born + OLD > 1 && born + OLD <= LOOKS)
        p->truth += p->size_bytes;
}

/* Evenly, so many bytes from one time to another. */
static void leak(struct program *p, double bytes, double from, double to)
{
    double n = bytes / p->size_bytes;
    for (double i = 0; i < n; i++)
        allocate(p, from + (to - from) * (i + uniform(p)) / n, NEVER);
}

/* Objects come by chance and live exponentially long: so many bytes at any time. */
static void churn(struct program *p, double bytes, double life)
{
    double n = bytes / p->size_bytes;
    for (double i = 0; i < n; i++)
        allocate(p, 0, exponential(p) * life);
    for (double t = 0; (t += exponential(p) * life / n) < LENGTH;)
        allocate(p, t, t + exponential(p) * life);
}

/* So many bytes, each replaced by the next when its time has come: no more and no less at any time. */
static void ring(struct program *p, double bytes, double life)
{
    double n = bytes / p->size_bytes, step = life / n;
    for (double t = -life; t < LENGTH; t += step)
        allocate(p, t, t + life);
}

static void sawtooth(struct program *p, double bytes, double period)
{
    double n = bytes / p->size_bytes, phase = uniform(p) * period;
    for (double begin = -phase; begin < LENGTH; begin += period)
        for (double i = 0; i < n; i++)
            allocate(p, begin + period * i / n, begin + period);
}

/* ---- what watch sees of it ---- */

static uint64_t instant(double looks)
{
    return (uint64_t)((double)START + looks * LOOK);
}

static void look(struct series *s, const struct program *p, double now)
{
    uint32_t stack = series_stack_of(s, "k", 1);
    for (size_t i = 0; i < p->objects.len; i++) {
        const struct object *o = &p->objects.at[i];
        if (o->born + OLD > now || o->freed <= now)
            continue;
        struct series_sample sample = {.serial = i + 1,
                                       .arrived_ns = instant(o->born + OLD),
                                       .size_bytes = (uint64_t)o->size_bytes,
                                       .period_bytes = (uint64_t)p->period_bytes,
                                       .stack = stack};
        series_see(s, &sample);
    }
    series_end_snapshot(s, instant(now));
}

typedef void (*behaviour)(struct program *p, double parameter);

struct rates {
    unsigned marked; /* at the end of the run */
    unsigned ever;   /* at some look of it, of every fifth */
    unsigned told;   /* at some look of it --alert growing came true */
    unsigned held;   /* of those marked: the slope's interval holds the truth */
};

static struct rates rates_of(behaviour behave, double parameter, double size_bytes, double period_bytes)
{
    struct rates rates = {0};
    for (unsigned run = 0; run < RUNS; run++) {
        struct program p = {
            .random = (SEED + run) * 7919 + 1, .period_bytes = period_bytes, .size_bytes = size_bytes};
        struct series *s = series_new();
        struct growth g = {0};
        bool ever = false, told = false;
        behave(&p, parameter);
        for (unsigned k = 1; k <= LOOKS; k++) {
            look(s, &p, k);
            if (k % 5 == 0)
                g = growth_of(s, 0);
            ever |= g.growing;
            told |= g.lasting_ns >= ALERT_GROWING_NS;
        }
        double hours = (double)(instant(LOOKS) - s->snapshots_ns[0]) / 3600e9, truth = p.truth / hours;
        rates.marked += g.growing;
        rates.ever += ever;
        rates.told += told;
        rates.held += g.growing && g.since_ns == s->snapshots_ns[0] && g.interval.low <= truth &&
                      truth <= g.interval.high;
        series_free(s);
        vec_release(&p.objects);
    }
    return rates;
}

/* ---- behaviours ---- */

static void leaks(struct program *p, double bytes)
{
    leak(p, bytes, 0, LENGTH);
}

static void leaks_over_churn(struct program *p, double life)
{
    leak(p, 20 * MIB, 0, LENGTH);
    churn(p, 20 * MIB, life);
}

static void leaks_over_sawtooth(struct program *p, double period)
{
    leak(p, 20 * MIB, 0, LENGTH);
    sawtooth(p, 10 * MIB, period);
}

static void leaks_over_idle(struct program *p, double bytes)
{
    leak(p, 20 * MIB, 0, LENGTH);
    leak(p, bytes, -30, -5);
}

static void leaks_late(struct program *p, double from)
{
    leak(p, 20 * MIB, from, LENGTH);
    ring(p, 5 * MIB, 20);
}

static void fills(struct program *p, double until)
{
    leak(p, 60 * MIB, 0, until);
}

/* Keys at random: ever fewer are new. */
static void saturates(struct program *p, double time)
{
    double n = 60 * MIB / p->size_bytes;
    for (double i = 0; i < n; i++) {
        double t = exponential(p) * time;
        if (t < LENGTH)
            allocate(p, t, NEVER);
    }
}

static void fills_and_replaces(struct program *p, double until)
{
    double n = 60 * MIB / p->size_bytes, step = until / n;
    for (double t = 0; t < LENGTH; t += step)
        allocate(p, t, t + until);
}

static void saws(struct program *p, double period)
{
    sawtooth(p, 60 * MIB, period);
}

static void idles(struct program *p, double bytes)
{
    leak(p, bytes, -30, -5);
}

static void churns(struct program *p, double life)
{
    idles(p, 20 * MIB);
    churn(p, 60 * MIB, life);
}

static void rings(struct program *p, double life)
{
    ring(p, 60 * MIB, life);
}

/* ---- the bounds ---- */

struct scenario {
    const char *name;
    behaviour behave;
    double parameter, size_bytes;
    /* it adds for more than an hour, and frees nothing: who looks meanwhile cannot know better */
    bool long_ramp;
};

#define KIB 1024.0
static const struct scenario leaking[] = {
    {"leak of 20 MiB, 40 samples", leaks, 20 * MIB, 1000},
    {"leak of 20 MiB in 64 KiB", leaks, 20 * MIB, 64 * KIB},
    {"leak of 64 MiB in 1 MiB", leaks, 64 * MIB, 1024 * KIB},
    {"leak of 20 MiB over 100 MiB idle", leaks_over_idle, 100 * MIB, 1000},
    {"leak over churn, life 0.3 looks", leaks_over_churn, 0.3, 32 * KIB},
    {"leak over churn, life 1 look", leaks_over_churn, 1, 16 * KIB},
    {"leak over sawtooth of 2 looks", leaks_over_sawtooth, 2, 16 * KIB},
    {"leak from the middle on", leaks_late, LENGTH / 2, 4000},
    {"leak in the last third", leaks_late, LENGTH * 2 / 3, 4000},
};
static const struct scenario steady[] = {
    {"cache fills for a tenth", fills, LENGTH * 0.1, 4000},
    {"cache fills for a third", fills, LENGTH * 0.33, 4000, true},
    {"cache fills for six tenths", fills, LENGTH * 0.6, 4000, true},
    {"cache saturates, time a tenth", saturates, LENGTH * 0.1, 4000},
    {"cache saturates, time a fifth", saturates, LENGTH * 0.2, 4000},
    {"cache fills, then replaces", fills_and_replaces, LENGTH * 0.4, 4000, true},
    {"sawtooth of 2 looks", saws, 2, 32 * KIB},
    {"sawtooth of 7 looks", saws, 7, 4000},
    {"sawtooth of 20 looks", saws, 20, 4000},
    {"sawtooth of a fifth", saws, LENGTH / 5, 4000},
    {"sawtooth of a third", saws, LENGTH / 3, 4000, true},
    {"sawtooth of half", saws, LENGTH / 2, 4000, true},
    {"sawtooth of three quarters", saws, LENGTH * 0.75, 4000, true},
    {"sawtooth of half, 1 MiB", saws, LENGTH / 2, 1024 * KIB, true},
    {"idle", idles, 100 * MIB, 1000},
    {"nothing", idles, 0, 1000},
    {"churn, life 1 look", churns, 1, 32 * KIB},
    {"churn, life 5 looks", churns, 5, 16 * KIB},
    {"churn, life 20 looks", churns, 20, 4000},
    {"churn, life a third", churns, LENGTH / 3, 4000},
    {"churn, life of all", churns, LENGTH, 4000},
    {"churn of 1 MiB, life 20 looks", churns, 20, 1024 * KIB},
    {"replaced in turn, life 20 looks", rings, 20, 4000},
    {"replaced in turn, life a third", rings, LENGTH / 3, 4000},
};

#define N_LEAKING (sizeof(leaking) / sizeof(*leaking))
#define N_STEADY  (sizeof(steady) / sizeof(*steady))

/* Each is simulated once, when it is first asked for. */
static struct rates tell(const struct scenario *s, size_t number)
{
    static struct rates known[N_LEAKING + N_STEADY];
    static bool is_known[N_LEAKING + N_STEADY];
    struct rates *r = &known[number];
    if (is_known[number])
        return *r;
    *r = rates_of(s->behave, s->parameter, s->size_bytes, 512 * KIB);
    is_known[number] = true;
    print_message("# %-34s marked at the end %3u of %u, at some look %3u, told %3u, slope held %3u\n",
                  s->name, r->marked, RUNS, r->ever, r->told, r->held);
    return *r;
}

static struct rates tell_leaking(size_t i)
{
    return tell(&leaking[i], i);
}

static struct rates tell_steady(size_t i)
{
    return tell(&steady[i], N_LEAKING + i);
}

static void leaks_are_marked(void **state)
{
    (void)state;
    unsigned bad = 0;
    for (size_t i = 0; i < N_LEAKING; i++)
        bad += tell_leaking(i).marked < 95;
    assert_int_equal(bad, 0);
}

static void steady_ones_are_not(void **state)
{
    (void)state;
    unsigned bad = 0;
    for (size_t i = 0; i < N_STEADY; i++)
        bad += tell_steady(i).marked > 5;
    assert_int_equal(bad, 0);
}

/* Somebody who does not sit there is told of a leak, and not of a service that warms up for less than an hour. */
static void alerts_are_of_leaks(void **state)
{
    (void)state;
    unsigned bad = 0;
    for (size_t i = 0; i < 4;
         i++) /* those that leak for long enough, and so much that it can be seen in half the time */
        bad += tell_leaking(i).told < 95;
    for (size_t i = 0; i < N_STEADY; i++)
        bad += !steady[i].long_ramp && tell_steady(i).told > 5;
    assert_int_equal(bad, 0);
}

/* ---- the slope ---- */

static void slopes_hold_the_truth(void **state)
{
    (void)state;
    unsigned marked = 0, held = 0;
    for (size_t i = 0; i < 4;
         i++) { /* those without anything else in their stack that lives long enough to be seen */
        struct rates r = tell_leaking(i);
        marked += r.marked;
        held += r.held;
    }
    print_message("# the slope's interval held the truth in %u of %u\n", held, marked);
    assert_true(held >= marked * 92 / 100); /* those marked over a shorter stretch count as missed */
}

/* ---- the books, at period 1: every sum is exact ---- */

static void change_is(const struct series *s, uint32_t look, double bytes)
{
    struct series_sum in = series_arrived(s, 0, s->snapshots_ns[look], UINT64_MAX),
                      out = series_left(s, 0, look);
    assert_true(in.bytes.value - out.bytes.value == bytes);
}

/* Objects of 1, 2, 4, ... bytes: a sum says which are in it. At each look some come and some go, by chance. */
static void changes_are_exact(void **state)
{
    (void)state;
    struct program p = {.random = 5};
    struct series *s = series_new();
    bool here[40] = {false};
    double held[SERIES_SNAPSHOTS] = {0};
    uint64_t serial[40] = {0}, next = 0, arrived[40] = {0};
    uint32_t stack = series_stack_of(s, "k", 1);
    for (uint32_t k = 0; k < SERIES_SNAPSHOTS; k++) {
        uint64_t fresh = 0, left = 0;
        for (unsigned o = 0; o < 40; o++) {
            bool before = here[o], again = uniform(&p) < 0.3; /* freed and allocated anew: another sample */
            here[o] = uniform(&p) < 0.6;
            left += before && (!here[o] || again);
            fresh += here[o] && (!before || again);
            if (here[o] && (!before || again)) {
                serial[o] = ++next * 0x9e3779b97f4a7c15u;
                arrived[o] =
                    instant(k - uniform(&p) * 3); /* may lie before the last look: then it was late */
            }
            struct series_sample sample = {.serial = serial[o],
                                           .arrived_ns = arrived[o],
                                           .size_bytes = 1ull << o,
                                           .period_bytes = 1,
                                           .stack = stack};
            if (here[o])
                series_see(s, &sample);
            held[k] += here[o] ? ldexp(1, (int)o) : 0;
        }
        series_end_snapshot(s, instant(k));
        assert_int_equal(s->fresh, fresh);
        assert_int_equal(s->left, left);
        for (uint32_t j = 0; j <= k; j++)
            change_is(s, j, held[k] - held[j]);
    }
    series_free(s);
}

/* However many looks there were, few are kept, the first and the last among them, dense at the end. */
static void looks_are_thinned(void **state)
{
    (void)state;
    struct series *s = series_new();
    for (unsigned k = 0; k < 20000; k++) {
        struct series_sample sample = {.serial = 1, .arrived_ns = START, .size_bytes = 8, .period_bytes = 1};
        sample.stack = series_stack_of(s, "k", 1);
        if (k % 7)
            series_see(s, &sample);
        series_end_snapshot(s, instant(k));
        assert_true(s->n_snapshots <= SERIES_SNAPSHOTS);
        assert_int_equal(s->snapshots_ns[0], instant(0));
        assert_int_equal(s->snapshots_ns[s->n_snapshots - 1], instant(k));
    }
    assert_int_equal(s->snapshots_in_all, 20000);
    double now = instant(19999);
    for (uint32_t j = 1; j + 1 < s->n_snapshots; j++) {
        assert_true(s->snapshots_ns[j] > s->snapshots_ns[j - 1]);
        double gap = (double)(s->snapshots_ns[j + 1] - s->snapshots_ns[j]),
               ago = now - (double)s->snapshots_ns[j];
        assert_true(gap <= ago / 2 + LOOK); /* never a gap of more than half of what has passed since */
    }
    assert_int_equal(s->snapshots_ns[s->n_snapshots - 2], instant(19998));
    series_free(s);
}

/* A clock that is set back stops no look, and loses no sample. */
static void clocks_go_back(void **state)
{
    (void)state;
    struct series *s = series_new();
    for (unsigned k = 0; k < 10; k++) {
        for (uint64_t i = 0; i <= k; i++) {
            struct series_sample sample = {
                .serial = i, .arrived_ns = instant(i), .size_bytes = 8, .period_bytes = 1};
            sample.stack = series_stack_of(s, "k", 1);
            series_see(s, &sample);
        }
        series_end_snapshot(s, k < 5 ? instant(k) : START / 2);
        for (uint32_t j = 0; j <= k; j++)
            change_is(s, j, 8.0 * (k - j));
    }
    series_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changes_are_exact),     cmocka_unit_test(looks_are_thinned),
        cmocka_unit_test(clocks_go_back),        cmocka_unit_test(leaks_are_marked),
        cmocka_unit_test(slopes_hold_the_truth), cmocka_unit_test(steady_ones_are_not),
        cmocka_unit_test(alerts_are_of_leaks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
