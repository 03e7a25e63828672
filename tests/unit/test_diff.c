/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * src/model/diff: what is matched with what, and what must hold of any two profiles.
 */
#include "test_diff.h"

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
    assert_true(d->pair->by_name && d->pair->versions);
    assert_near(diff_row_named(d, "value_new")->change.value, 2 * 4096);
    struct frames frames = {0};
    frames_of(&frames, d->pair->profile, diff_row_named(d, "value_new")->index);
    assert_int_equal(frames.len, 4);
    assert_int_equal(frame_line(d->pair->profile, &frames.at[1]), 300);
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
    assert_true(d->pair->by_name && !d->pair->versions);
    assert_int_equal(d->pair->images.len, 3);
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
    at[0]->period_bytes = 1;
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

/* Both moments in the past, and the process freed all before its end: the books alone tell that nothing was freed. */
static void what_is_never_freed_stays_though_no_sample_is_known(void **state)
{
    (void)state;
    struct profile *at[2];
    uint64_t seed = 3;
    simulate(at, &seed, (struct fate[]){{PARSE, 4096, 60000, 0, 4000, 0}}, 1, PERIOD, BLIND);
    struct diff *d = compare(at, ROLLUP_BY_STACK, ROLLUP_SORT_LIVE);
    struct diff_change live = diff_change(&d->total[ROLLUP_LIVE], false);
    struct diff_change allocated = diff_change(&d->total[ROLLUP_ALLOCATED], false);
    assert_int_equal(at[0]->samples.len + at[1]->samples.len, 0);
    assert_true(live.interval.low > 0);
    assert_near(live.value, allocated.value);
    assert_near(live.interval.high, allocated.interval.high);
    diff_free(d);
    release(at);
}

static void what_was_allocated_does_not_become_less(void **state)
{
    (void)state;
    struct profile *at[2];
    uint64_t seed = 4;
    simulate(at, &seed, (struct fate[]){{PARSE, 4096, 6000, 500, 0, 0}}, 1, PERIOD, COMPLETE);
    struct diff *d = compare(at, ROLLUP_BY_STACK, ROLLUP_SORT_ALLOCATED);
    struct diff_change c = diff_change(&d->total[ROLLUP_ALLOCATED], false);
    assert_true(c.value == 0 && c.interval.low == 0);
    assert_true(c.interval.high > 3.68 * PERIOD && c.interval.high < 3.7 * PERIOD);
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
        TEST("what is never freed stays, though no sample of it is known",
             what_is_never_freed_stays_though_no_sample_is_known),
        TEST("what was allocated does not become less", what_was_allocated_does_not_become_less),
        TEST("a filter holds for both sides", a_filter_holds_for_both),
        TEST("sums that contradict each other give ordered figures", nonsense_gives_ordered_figures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
