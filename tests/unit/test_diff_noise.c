/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * src/model/diff, by simulation: a leak shows, noise does not, and the interval of a change holds the truth.
 */
#include "test_diff.h"

#define RUNS 100 /* of each simulation of leaks and noise */

static double live_change(const struct fate *fates, size_t n, bool count)
{
    double change = 0;
    for (size_t i = 0; i < n; i++)
        change += ((double)fates[i].added - fates[i].freed) * (count ? 1 : (double)fates[i].size);
    return change;
}

static bool holds(const struct diff_change *c, double truth)
{
    return c->interval.low <= truth && truth <= c->interval.high;
}

/* ---- leak and noise ---- */

/* 1 GiB in three places that stays, and a hundredth of it more. */
static void a_leak_of_one_percent_is_no_noise(void **state)
{
    static const struct fate fates[] = {
        {PARSE, 4096, 131072, 0, 0, 50000}, {CACHE, 65536, 4096, 0, 0, 0}, {WALK, 1024, 262144, 0, 10485, 0}};
    uint64_t seed = 2611;
    int seen = 0, hidden = 0, other_rows = 0;
    (void)state;
    for (int run = 0; run < RUNS; run++) {
        struct profile *at[2];
        simulate(at, &seed, fates, 3, PERIOD, (enum knowledge)(run % 3));
        struct diff *d = compare(at, ROLLUP_BY_STACK, ROLLUP_SORT_LIVE);
        const struct diff_value *live = &d->total[ROLLUP_LIVE];
        struct diff_change c = diff_change(live, false);
        struct interval own = estimate_interval(&live->of[DIFF_AFTER].bytes);
        seen += !diff_is_noise(&c) && d->certain == 1 && !strcmp(d->rows.at[0].name, "node_new");
        hidden += own.high - own.low > live_change(fates, 3, false);
        other_rows += d->rows.len > 1;
        diff_free(d);
        release(at);
    }
    if (seen < 95 || hidden < RUNS || other_rows)
        fail_msg("seen in %d of %d, %d times within the total's own interval, %d times with others", seen,
                 RUNS, hidden, other_rows);
}

static int count_noise(const struct fate *fates, size_t n, enum knowledge known, bool strange, uint64_t seed)
{
    int noise = 0;
    for (int run = 0; run < RUNS; run++) {
        struct profile *at[2], *other[2] = {NULL, NULL};
        simulate(at, &seed, fates, n, PERIOD, known);
        if (strange) { /* the second moment of another run */
            simulate(other, &seed, fates, n, PERIOD, known);
            estrange(other[1]);
        }
        struct diff *d = compare((struct profile *[2]){at[0], strange ? other[1] : at[1]}, ROLLUP_BY_STACK,
                                 ROLLUP_SORT_LIVE);
        struct diff_change c = diff_change(&d->total[ROLLUP_LIVE], false);
        noise += diff_is_noise(&c);
        diff_free(d);
        release(at);
        release(other);
    }
    return noise;
}

static void churn_without_growth_is_noise(void **state)
{
    (void)state;
    for (int known = COMPLETE; known <= BLIND; known++) {
        int noise = count_noise(churn, 3, (enum knowledge)known, false, 77u + (unsigned)known);
        if (noise < 93)
            fail_msg("noise in %d of %d, known %d", noise, RUNS, known);
    }
}

static void two_runs_of_one_program_differ_by_noise(void **state)
{
    (void)state;
    int noise = count_noise(churn, 3, COMPLETE, true, 4711);
    if (noise < 93)
        fail_msg("noise in %d of %d", noise, RUNS);
}

/* ---- the interval holds the truth ---- */

struct world {
    const char *name;
    uint64_t period;
    bool counts; /* sizes as those that estimate.h's intervals of counts are made for */
    struct fate fates[4];
};

static const struct world worlds[] = {
    {"few", PERIOD, true, {{PARSE, 4096, 500, 200, 700, 100}}},
    {"small ones unseen", PERIOD, false, {{PARSE, 4096, 500, 200, 700, 100}, {WALK, 48, 9000, 3000, 500, 0}}},
    {"a little growth", PERIOD, true, {{PARSE, 4096, 20000, 500, 1200, 0}, {CACHE, 20000, 500, 50, 90, 0}}},
    {"all is replaced", PERIOD, true, {{PARSE, 16384, 0, 3000, 3000, 0}, {JIT, MIB, 0, 40, 20, 0}}},
    {"shrinking", PERIOD, true, {{CACHE, 1000, 1000, 60000, 9000, 100}, {JIT, 300000, 10, 12, 2, 5}}},
    {"near the period", 4096, true, {{PARSE, 4096, 300, 200, 250, 9}, {WALK, 6000, 30, 30, 1, 9}}},
    {"doubling sizes",
     PERIOD,
     true,
     {{PARSE, 64, 200, 3000, 5000, 0},
      {PARSE, 512, 200, 3000, 5000, 0},
      {PARSE, 4096, 200, 3000, 5000, 0},
      {PARSE, 32768, 20, 300, 500, 0}}},
};

#define ROUNDS 600

/* Of the change of live and of allocated bytes and objects; `strange`: the second moment is another run's. */
static void check_coverage(const struct world *w, enum knowledge known, bool strange)
{
    size_t n = sizeof(w->fates) / sizeof(*w->fates);
    while (n && !w->fates[n - 1].size)
        n--;
    int held[4] = {0};
    double allocated[2] = {0};
    uint64_t seed = 1 + (uint64_t)(w - worlds) * 100 + (uint64_t)known * 10 + strange;
    for (size_t i = 0; i < n; i++) {
        double objects = (double)w->fates[i].added + w->fates[i].passed;
        allocated[0] += objects * (double)w->fates[i].size;
        allocated[1] += objects;
    }
    for (int round = 0; round < ROUNDS; round++) {
        struct profile *at[2], *other[2] = {NULL, NULL};
        simulate(at, &seed, w->fates, n, w->period, known);
        if (strange) {
            simulate(other, &seed, w->fates, n, w->period, known);
            estrange(other[1]);
        }
        struct diff *d = compare((struct profile *[2]){at[0], strange ? other[1] : at[1]}, ROLLUP_BY_SIZE,
                                 ROLLUP_SORT_LIVE);
        for (int count = 0; count < 2; count++) {
            struct diff_change live = diff_change(&d->total[ROLLUP_LIVE], count);
            struct diff_change all = diff_change(&d->total[ROLLUP_ALLOCATED], count);
            held[count] += holds(&live, live_change(w->fates, n, count));
            held[2 + count] += holds(&all, allocated[count]);
        }
        diff_free(d);
        release(at);
        release(other);
    }
    for (int k = 0; k < 4; k++)
        if ((w->counts || !(k % 2)) && held[k] < ROUNDS * 93 / 100)
            fail_msg("%s, known %d, strange %d: %s %s held in %d of %d", w->name, known, strange,
                     k < 2 ? "live" : "allocated", k % 2 ? "objects" : "bytes", held[k], ROUNDS);
}

static void coverage_of_two_moments(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(worlds) / sizeof(*worlds); i++)
        for (int known = COMPLETE; known <= BLIND; known++)
            check_coverage(&worlds[i], (enum knowledge)known, false);
}

static void coverage_of_two_runs(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(worlds) / sizeof(*worlds); i++)
        check_coverage(&worlds[i], COMPLETE, true);
}

/* When it grew by exactly what is allowed, to say more is wrong: 2.5 % are allowed of that, bounded here by 4 %. */
static void an_excess_is_seldom_claimed_wrongly(void **state)
{
    static const struct fate fates[] = {{PARSE, 4096, 8000, 2000, 4000, 0}, {CACHE, 30000, 500, 100, 190, 0}};
    double before = 10000.0 * 4096 + 600.0 * 30000, share = live_change(fates, 2, false) / before;
    (void)state;
    for (int strange = 0; strange < 2; strange++) {
        uint64_t seed = 99;
        int wrong = 0, right = 0;
        for (int round = 0; round < ROUNDS; round++) {
            struct profile *at[2], *other[2];
            simulate(at, &seed, fates, 2, 64 * KIB, COMPLETE);
            simulate(other, &seed, fates, 2, 64 * KIB, COMPLETE);
            estrange(other[1]);
            struct diff *d = compare((struct profile *[2]){at[0], strange ? other[1] : at[1]}, ROLLUP_BY_SIZE,
                                     ROLLUP_SORT_LIVE);
            const struct diff_value *live = &d->total[ROLLUP_LIVE];
            wrong += diff_least_excess(live, false, share) > 0;
            right += diff_least_excess(live, false, share / 4) > 0;
            diff_free(d);
            release(at);
            release(other);
        }
        if (wrong > ROUNDS * 4 / 100 || right < ROUNDS * (strange ? 20 : 90) / 100)
            fail_msg("strange %d: claimed wrongly %d times, rightly %d times of %d", strange, wrong, right,
                     ROUNDS);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST("a leak of 1 % in a large static heap is no noise", a_leak_of_one_percent_is_no_noise),
        TEST("churn without growth is noise", churn_without_growth_is_noise),
        TEST("two runs of one program differ by noise", two_runs_of_one_program_differ_by_noise),
        TEST("the interval of a change between two moments holds the truth", coverage_of_two_moments),
        TEST("the interval of a change between two runs holds the truth", coverage_of_two_runs),
        TEST("an excess is seldom claimed wrongly", an_excess_is_seldom_claimed_wrongly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
