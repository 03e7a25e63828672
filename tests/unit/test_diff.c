/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * src/model/diff: what is matched with what, and, by simulation, that a leak shows, that noise does not, and that the
 * interval of a change holds the truth. Everything is drawn from fixed seeds; the truth is what was drawn from.
 */
#include "test_view_truth.h"

#include "model/diff.h"

/* ---- a heap of which each object is drawn ---- */

#define RUNS 100 /* of each simulation */

/** Objects of one stack: what became of them between the two moments. */
struct fate {
    uint32_t stack; /* of enum shop_stack */
    uint64_t size;
    uint32_t stayed, freed, added, passed; /* objects; passed: allocated and freed between */
};

enum knowledge {
    COMPLETE,  /* both moments know their samples */
    PAST,      /* the first is of the past: the sums alone */
    BOTH_PAST, /* the second, too: of it those samples are known that were in the first, too, and lived on */
    BLIND      /* and none did */
};

/* xorshift64*; uniform in (0, 1). */
static double draw(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return ((double)((*state * 0x2545f4914f6cdd1dull) >> 11) + 0.5) * 0x1p-53;
}

static uint32_t draw_samples(uint64_t *state, uint32_t objects, uint64_t size, uint64_t period)
{
    uint32_t k = 0;
    double p = 1 / rollup_weight(size, period);
    for (uint32_t i = 0; i < objects; i++)
        k += draw(state) < p;
    return k;
}

static struct profile_sums sums(const struct fate *f, uint64_t period, uint32_t k)
{
    return sums_of(&(struct objects){.size = f->size, .period = period}, k);
}

static void add_live(struct profile *p, uint32_t cell, uint64_t size, uint64_t serial, uint32_t k,
                     uint64_t born_ns)
{
    for (uint32_t i = 0; i < k; i++)
        *vec_push(&p->samples) = (struct profile_sample){
            .cell = cell, .serial = serial + i, .size_bytes = size, .born_ns = born_ns};
}

static struct profile *moment(bool past, uint64_t taken_ns)
{
    struct profile *p = profile_new();
    uint32_t image = add_image(p, "shop", 4242, "/opt/shop/bin/shop");
    add_shop_modules(p, SHOP_AT);
    add_shop_stacks(p, 0);
    p->images.at[image].past = past;
    p->images.at[image].taken_ns = p->taken_ns = taken_ns;
    return p;
}

/** Two moments of one image, a minute apart. */
static void simulate(struct profile *at[2], uint64_t *state, const struct fate *fates, size_t n,
                     uint64_t period, enum knowledge known)
{
    uint64_t middle = BEGAN + 60 * SECOND, serial = 1;
    at[0] = moment(known != COMPLETE, middle);
    at[1] = moment(known >= BOTH_PAST, middle + 60 * SECOND);
    for (const struct fate *f = fates; f < fates + n; f++) {
        uint32_t stayed = draw_samples(state, f->stayed, f->size, period);
        uint32_t freed = draw_samples(state, f->freed, f->size, period);
        uint32_t added = draw_samples(state, f->added, f->size, period);
        uint32_t passed = draw_samples(state, f->passed, f->size, period);
        struct profile_cell cell = {.stack = f->stack,
                                    .size_class = (uint8_t)(63 - __builtin_clzll(f->size)),
                                    .period_bytes = period,
                                    .allocated = sums(f, period, stayed + freed)};
        uint32_t index = (uint32_t)at[0]->cells.len;
        *vec_push(&at[0]->cells) = cell;
        cell.allocated = sums(f, period, stayed + freed + added + passed);
        cell.freed = sums(f, period, freed + passed);
        *vec_push(&at[1]->cells) = cell;
        if (known == COMPLETE) {
            add_live(at[0], index, f->size, serial, stayed, BEGAN);
            add_live(at[0], index, f->size, serial + stayed, freed, BEGAN);
        }
        if (known != BLIND)
            add_live(at[1], index, f->size, serial, stayed, BEGAN);
        if (known < BOTH_PAST)
            add_live(at[1], index, f->size, serial + stayed + freed, added, middle + SECOND);
        serial += stayed + freed + added;
    }
    assert_true(profile_valid(at[0]) && profile_valid(at[1]));
}

/** As another run of the program. */
static void estrange(struct profile *p)
{
    p->images.at[0].id += 77;
    p->images.at[0].pid += 77;
}

static struct diff *compare(struct profile *const at[2], enum rollup_group group, enum rollup_sort sort)
{
    struct diff_options o = {.group = group, .sort = sort, .inclusive = group != ROLLUP_BY_STACK};
    return diff_new(at[0], at[1], &o);
}

static void release(struct profile *at[2])
{
    profile_free(at[0]);
    profile_free(at[1]);
}

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

static const struct fate churn[] = {{PARSE, 4096, 30000, 9000, 9000, 20000},
                                    {CACHE, 200, 100000, 50000, 50000, 0},
                                    {JIT, 512 * KIB, 20, 30, 30, 9}};

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

/* ---- what is matched ---- */

static const struct diff_row *diff_row_named(const struct diff *d, const char *name)
{
    vec_each (const struct diff_row, row, &d->rows)
        if (!strcmp(row->name, name))
            return row;
    return NULL;
}

static void twice_the_same_has_not_changed(void **state)
{
    (void)state;
    struct profile *p = shop(PERIOD);
    for (int sort = ROLLUP_SORT_LIVE; sort <= ROLLUP_SORT_TEMPORARY; sort++) {
        struct diff *d = compare((struct profile *[2]){p, p}, ROLLUP_BY_FUNCTION, (enum rollup_sort)sort);
        assert_int_equal(d->rows.len, 0);
        assert_true(d->unchanged > 5);
        for (int m = 0; m < ROLLUP_METRICS; m++) {
            struct diff_change bytes = diff_change(&d->total[m], false),
                               count = diff_change(&d->total[m], true);
            assert_true(bytes.value == 0 && bytes.interval.low == 0 && bytes.interval.high == 0);
            assert_true(count.value == 0 && count.interval.low == 0 && count.interval.high == 0);
        }
        diff_free(d);
    }
    profile_free(p);
}

static void the_sides_are_what_a_report_shows(void **state)
{
    (void)state;
    struct profile *at[2] = {shop(PERIOD), shop(64 * KIB)};
    estrange(at[1]);
    struct diff *d = compare(at, ROLLUP_BY_STACK, ROLLUP_SORT_LIVE);
    for (int side = 0; side < 2; side++) {
        struct rollup *r = roll(at[side], ROLLUP_BY_STACK, ROLLUP_SORT_LIVE);
        for (int m = 0; m < ROLLUP_METRICS; m++) {
            const struct rollup_value *have = &d->total[m].of[side], *want = &r->total.of[m];
            assert_near(have->bytes.value, want->bytes.value);
            assert_near(estimate_interval(&have->bytes).high, estimate_interval(&want->bytes).high);
            assert_near(estimate_interval(&have->count).low, estimate_interval(&want->count).low);
        }
        rollup_free(r);
    }
    diff_free(d);
    release(at);
}

static void exact_changes_add_up(void **state)
{
    static const struct fate fates[] = {
        {PARSE, 4096, 10, 3, 4, 5}, {WALK, 48, 7, 9, 0, 1}, {DEEP, 64, 5, 0, 0, 2}};
    uint64_t seed = 5;
    (void)state;
    for (int known = COMPLETE; known <= BLIND; known++) {
        struct profile *at[2];
        simulate(at, &seed, fates, 3, 1, (enum knowledge)known);
        struct diff *d = compare(at, ROLLUP_BY_STACK, ROLLUP_SORT_LIVE);
        assert_int_equal(d->rows.len, 2);
        assert_int_equal(d->unchanged, 1);
        assert_int_equal(d->certain, 2);
        assert_near(d->rows.at[0].change.value, 4096);
        assert_near(d->rows.at[0].change.interval.low, 4096);
        assert_near(d->rows.at[1].change.value, -9 * 48);
        struct diff_change all = diff_change(&d->total[ROLLUP_ALLOCATED], true);
        assert_near(all.value, 4 + 5 + 1 + 2);
        assert_near(all.interval.high, 12);
        diff_free(d);
        d = compare(at, ROLLUP_BY_FUNCTION, ROLLUP_SORT_LIVE);
        assert_near(diff_row_named(d, "main")->change.value, 4096 - 9 * 48);
        assert_near(diff_change(&diff_row_named(d, "main")->self, false).value, 0);
        assert_string_equal(d->rows.at[0].name,
                            "value_new"); /* of those that are alike, the one that did it */
        diff_free(d);
        release(at);
    }
}

static void a_reversed_order_turns_all_signs(void **state)
{
    uint64_t seed = 8;
    struct profile *at[2];
    (void)state;
    simulate(at, &seed, churn, 3, PERIOD, PAST);
    struct diff *d = compare(at, ROLLUP_BY_STACK, ROLLUP_SORT_LIVE);
    struct diff *back = compare((struct profile *[2]){at[1], at[0]}, ROLLUP_BY_STACK, ROLLUP_SORT_LIVE);
    assert_int_equal(d->rows.len, back->rows.len);
    for (int m = ROLLUP_LIVE; m <= ROLLUP_ALLOCATED; m += ROLLUP_ALLOCATED - ROLLUP_LIVE) {
        struct diff_change one = diff_change(&d->total[m], false),
                           other = diff_change(&back->total[m], false);
        assert_near(one.value, -other.value);
        assert_near(one.interval.low, -other.interval.high);
        assert_near(one.interval.high, -other.interval.low);
    }
    diff_free(d);
    diff_free(back);
    release(at);
}

/* The shop, built anew: another path, other addresses and lines, other inlining. */
static struct profile *new_shop(void)
{
    struct profile *p = profile_new();
    uint32_t image = add_image(p, "shop-2", 99, "/home/me/shop-2");
    uint32_t shop_module = add_module(p, "/home/me/shop-2", 0x400000);
    uint32_t json = add_module(p, "/opt/lib/libjson.so.1.7", 0x7f0000000000u);
    uint32_t value = add_code(p, json, 0x94, "value_new", "/src/json/value.h", 13);
    uint32_t parse = add_code(p, json, 0x98, "json_parse", "/src/json/parse.c", 300);
    uint32_t load = add_code(p, shop_module, 0x77, "load_catalogue", "/src/shop/catalogue.c", 80);
    uint32_t main_load = add_code(p, shop_module, 0x78, "main", "/src/shop/main.c", 41);
    uint32_t stack = add_stack(p, PROFILE_STACK_WHOLE, 4, (uint32_t[]){value, parse, load, main_load});
    add_objects(p, (struct objects){image, stack, image, 4 * KIB, 1, 60, 18, 50, 4, 2, 8});
    assert_true(profile_valid(p));
    return p;
}

static void versions_are_matched_by_name(void **state)
{
    (void)state;
    struct profile *at[2] = {shop(1), new_shop()};
    struct diff *d = compare(at, ROLLUP_BY_STACK, ROLLUP_SORT_LIVE);
    assert_true(d->joint->by_name && d->joint->versions);
    assert_near(diff_row_named(d, "value_new")->change.value, 2 * 4096);
    struct frames frames = {0};
    frames_of(&frames, d->joint->profile, diff_row_named(d, "value_new")->index);
    assert_int_equal(frames.len, 4);
    assert_int_equal(frame_line(d->joint->profile, &frames.at[1]), 300);
    vec_release(&frames);
    diff_free(d);
    d = compare(at, ROLLUP_BY_MODULE, ROLLUP_SORT_LIVE);
    assert_near(diff_row_named(d, "/opt/lib/libjson.so.1.7")->change.value, 2 * 4096);
    diff_free(d);
    d = compare(at, ROLLUP_BY_PROCESS, ROLLUP_SORT_LIVE);
    assert_int_equal(d->rows.len, 1);
    assert_string_equal(d->rows.at[0].name, "shop-2");
    diff_free(d);
    release(at);
}

/* A service: one process of it is in both sources, and its workers come and go. */
static void workers_are_matched_by_program(void **state)
{
    (void)state;
    struct profile *at[2] = {shop(1), shop(1)};
    for (int side = 0; side < 2; side++)
        for (int i = 0; i <= side; i++) {
            uint32_t worker = add_image(at[side], "worker", 500 + 10 * side + i, "/opt/shop/bin/worker");
            uint32_t image = add_image(at[side], "helper", 600 + 10 * side + i, "/opt/shop/bin/helper");
            add_objects(at[side], (struct objects){worker, PARSE, worker, 1000, 1, 5, 4, 0, 0, 0, 0});
            add_objects(at[side], (struct objects){image, CACHE, image, 500, 1, 5, 4, 0, 0, 0, 0});
        }
    at[1]->images.at[0].taken_ns += SECOND;
    struct diff *d = compare(at, ROLLUP_BY_PROCESS, ROLLUP_SORT_LIVE);
    assert_true(d->joint->by_name && !d->joint->versions);
    assert_int_equal(d->joint->images.len, 3);
    assert_int_equal(d->unchanged, 1); /* the one that is in both */
    assert_near(diff_row_named(d, "worker (1 before, 2 after)")->change.value, 4000);
    assert_near(diff_row_named(d, "helper (1 before, 2 after)")->change.value, 2000);
    diff_free(d);
    release(at);
}

static void what_is_in_one_source_only_grew_or_shrank(void **state)
{
    (void)state;
    struct profile *at[2] = {profile_new(), shop(1)};
    struct diff *d = compare(at, ROLLUP_BY_STACK, ROLLUP_SORT_LIVE);
    struct rollup *r = roll(at[1], ROLLUP_BY_STACK, ROLLUP_SORT_LIVE);
    assert_near(diff_change(&d->total[ROLLUP_LIVE], false).value, live_of(&r->total));
    assert_int_equal(d->rows.len + d->unchanged, r->rows.len);
    diff_free(d);
    d = compare((struct profile *[2]){at[1], at[0]}, ROLLUP_BY_STACK, ROLLUP_SORT_LIVE);
    assert_near(diff_change(&d->total[ROLLUP_LIVE], false).value, -live_of(&r->total));
    diff_free(d);
    rollup_free(r);
    release(at);
}

/* Of a run in which nothing was sampled all that is known is its period. */
static void silence_bounds_the_change(void **state)
{
    (void)state;
    struct profile *at[2] = {profile_new(), profile_new()};
    at[0]->period_bytes = at[1]->period_bytes = PERIOD;
    struct diff *d = compare(at, ROLLUP_BY_STACK, ROLLUP_SORT_LIVE);
    struct diff_change c = diff_change(&d->total[ROLLUP_LIVE], false);
    assert_true(c.value == 0 && c.interval.low < -3.68 * PERIOD && c.interval.high > 3.68 * PERIOD);
    assert_int_equal(d->rows.len, 0);
    diff_free(d);
    release(at);
}

static void a_past_moment_knows_less(void **state)
{
    (void)state;
    struct profile *at[2] = {shop(PERIOD), shop(PERIOD)};
    send_back(at[0], 0);
    struct diff *d = compare(at, ROLLUP_BY_STACK, ROLLUP_SORT_PEAK);
    assert_true(!diff_known(d, ROLLUP_PEAK) && !diff_known(d, ROLLUP_TEMPORARY));
    assert_true(diff_known(d, ROLLUP_LIVE) && diff_known(d, ROLLUP_ALLOCATED));
    assert_int_equal(d->rows.len, 0);
    diff_free(d);
    release(at);
}

/* Of cells that never free anything, all that was there at the first peak was there at the second. */
static void what_is_never_freed_is_in_both_peaks(void **state)
{
    (void)state;
    struct profile *at[2];
    uint64_t seed = 3;
    simulate(at, &seed, (struct fate[]){{PARSE, 4096, 60000, 0, 4000, 0}}, 1, PERIOD, COMPLETE);
    for (int side = 0; side < 2; side++) {
        at[side]->cells.at[0].at_peak = at[side]->cells.at[0].allocated;
        at[side]->images.at[0].peak_ns = at[side]->images.at[0].taken_ns;
    }
    struct diff *d = compare(at, ROLLUP_BY_STACK, ROLLUP_SORT_PEAK);
    struct diff_change peak = diff_change(&d->total[ROLLUP_PEAK], false);
    struct diff_change live = diff_change(&d->total[ROLLUP_LIVE], false);
    assert_near(peak.interval.low, live.interval.low);
    assert_true(peak.interval.low > 0);
    diff_free(d);
    release(at);
}

static bool keep_parse(void *arg, const struct profile *p, uint32_t cell)
{
    (void)arg;
    return p->cells.at[cell].stack == PARSE;
}

static void a_filter_holds_for_both(void **state)
{
    static const struct fate fates[] = {{PARSE, 4096, 10, 3, 4, 5}, {WALK, 48, 7, 9, 0, 1}};
    uint64_t seed = 5;
    struct profile *at[2];
    (void)state;
    simulate(at, &seed, fates, 2, 1, COMPLETE);
    struct diff *d = diff_new(at[0], at[1], &(struct diff_options){.keep = keep_parse});
    assert_near(diff_change(&d->total[ROLLUP_LIVE], false).value, 4096);
    assert_int_equal(d->rows.len, 1);
    assert_int_equal(d->unchanged, 0);
    diff_free(d);
    release(at);
}

/* Sums that contradict each other, as a file from elsewhere may hold them. */
static void nonsense_gives_ordered_figures(void **state)
{
    uint64_t seed = 21;
    (void)state;
    for (int round = 0; round < 300; round++) {
        struct profile *at[2];
        simulate(at, &seed, churn, 3, PERIOD, (enum knowledge)(round % 3));
        for (int side = 0; side < 2; side++)
            vec_each (struct profile_cell, c, &at[side]->cells) {
                struct profile_sums *s = draw(&seed) < 0.5 ? &c->allocated : &c->freed;
                s->samples = (uint64_t)(draw(&seed) * (draw(&seed) < 0.3 ? 1e19 : 100));
                s->bytes = draw(&seed) * 1e9;
                s->count = draw(&seed) * 1e6;
            }
        vec_each (struct profile_sample, s, &at[1]->samples)
            s->serial = (uint64_t)(draw(&seed) * 9);
        struct diff *d = compare(at, ROLLUP_BY_STACK, ROLLUP_SORT_LIVE);
        for (int m = 0; m < ROLLUP_METRICS; m++)
            for (int count = 0; count < 2; count++) {
                struct diff_change c = diff_change(&d->total[m], count);
                assert_true(isfinite(c.value) && isfinite(c.interval.low) && isfinite(c.interval.high));
                assert_true(c.interval.low <= c.value && c.value <= c.interval.high);
            }
        diff_free(d);
        release(at);
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
        TEST("twice the same has not changed at all", twice_the_same_has_not_changed),
        TEST("before and after are what a report shows", the_sides_are_what_a_report_shows),
        TEST("exact changes add up", exact_changes_add_up),
        TEST("a reversed order turns all signs", a_reversed_order_turns_all_signs),
        TEST("versions of a program are matched by name", versions_are_matched_by_name),
        TEST("workers are matched by program, and others by image", workers_are_matched_by_program),
        TEST("what is in one source only grew or shrank", what_is_in_one_source_only_grew_or_shrank),
        TEST("of silence the period bounds the change", silence_bounds_the_change),
        TEST("of a past moment peak and temporary are not known", a_past_moment_knows_less),
        TEST("what is never freed is in both peaks", what_is_never_freed_is_in_both_peaks),
        TEST("a filter holds for both sides", a_filter_holds_for_both),
        TEST("sums that contradict each other give ordered figures", nonsense_gives_ordered_figures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
