/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * src/model/rollup: what is not seen, and what is not known.
 */
#include "test_view_truth.h"

static void unseen_rows_have_bounds(void **state)
{
    (void)state;
    struct profile *p = shop(PERIOD);
    struct rollup *r = roll(p, ROLLUP_BY_STACK, ROLLUP_SORT_LIVE);
    const struct rollup_row *last = &r->rows.at[r->rows.len - 1]; /* the recursion: none is left */
    assert_near(last->self.of[ROLLUP_LIVE].bytes.value, 0);
    assert_false(rollup_exact(&last->self.of[ROLLUP_LIVE].bytes));
    assert_true(estimate_interval(&last->self.of[ROLLUP_LIVE].bytes).high > 3 * PERIOD);
    rollup_free(r);
    profile_free(p);
}

/* The bound is where it is just likely enough that no object is sampled: 2.5 %, by what sampling is. */
static void assert_bound(const struct estimate *e, double object_bytes, double objects)
{
    double missed = exp(-object_bytes / PERIOD); /* one object */
    struct interval i = estimate_interval(e);
    assert_true(!e->samples && e->value == 0 && i.low == 0);
    assert_true(fabs(pow(missed, objects) - 0.025) < 1e-4);
}

static void a_filter_that_nothing_fits(void **state)
{
    (void)state;
    struct profile *p = shop(PERIOD), *exact = shop(1);
    for (int group = ROLLUP_BY_STACK; group <= ROLLUP_BY_PROCESS; group++) {
        const struct rollup_options o = {.group = (enum rollup_group)group, .keep = keep_none};
        struct rollup *r = rollup_new(p, &o);
        assert_int_equal(r->rows.len, 0);
        for (int m = 0; m < ROLLUP_METRICS; m++) {
            const struct rollup_value *v = &r->total.of[m];
            assert_bound(&v->bytes, 16, estimate_interval(&v->bytes).high / 16);
            assert_bound(&v->count, 8, estimate_interval(&v->count).high);
        }
        rollup_free(r);
        r = rollup_new(exact, &o);
        assert_true(rollup_exact(&r->total.of[ROLLUP_LIVE].bytes));
        assert_near(estimate_interval(&r->total.of[ROLLUP_LIVE].bytes).high, 0);
        rollup_free(r);
    }
    profile_free(p);
    profile_free(exact);
}

static void a_run_that_nothing_was_sampled_of(void **state)
{
    (void)state;
    struct profile *p = profile_new();
    p->period_bytes = PERIOD;
    struct rollup *r = roll(p, ROLLUP_BY_STACK, ROLLUP_SORT_LIVE);
    for (int m = 0; m < ROLLUP_METRICS; m++) {
        const struct rollup_value *v = &r->total.of[m];
        assert_bound(&v->bytes, 16, estimate_interval(&v->bytes).high / 16);
        assert_bound(&v->count, 8, estimate_interval(&v->count).high);
    }
    rollup_free(r);
    p->images_dropped = 1; /* there was something, of which nothing is known here */
    assert_int_equal(profile_silent_period(p), 0);
    p->images_dropped = 0;
    add_image(p, "shop", 4242, ""); /* its ledger may have other accounts alone */
    assert_int_equal(profile_silent_period(p), PERIOD);
    profile_free(p);
}

static unsigned bits(int a, int b, int c)
{
    return 1u << a | 1u << b | 1u << c;
}

/* Of programs it is not known what the allocator added. */
#define NOT_OF_PROGRAMS (1u << ROLLUP_REQUESTED | 1u << ROLLUP_SLACK)

static void the_past(void **state)
{
    (void)state;
    struct profile *p = shop(PERIOD);
    uint32_t image = add_image(p, "worker", 4343, "/opt/shop/bin/shop");
    add_shop_objects(p, image, 0, PERIOD);
    p->images.at[image].peak_ns = BEGAN + 10 * SECOND;
    send_back(p, 0);
    struct rollup *r = roll(p, ROLLUP_BY_PROCESS, ROLLUP_SORT_LIVE);
    const struct rollup_values *then = &row_named(r, "shop (4242)")->self;
    const struct rollup_values *whole = &row_named(r, "worker (4343)")->self;
    assert_int_equal(then->unknown, NOT_OF_PROGRAMS | bits(ROLLUP_PEAK, ROLLUP_TEMPORARY, ROLLUP_AGES));
    assert_int_equal(then->aged_samples, 0);
    assert_int_equal(whole->unknown, NOT_OF_PROGRAMS);
    assert_int_equal(whole->aged_samples, 25);
    assert_int_equal(r->total.unknown, then->unknown);
    assert_true(rollup_sort_known(ROLLUP_SORT_ALLOCATIONS, &r->total));
    assert_false(rollup_sort_known(ROLLUP_SORT_PEAK, &r->total));
    assert_false(rollup_sort_known(ROLLUP_SORT_AGE, &r->total));
    rollup_free(r);
    const struct rollup_options nothing = {.keep = keep_none}, old = {.keep_sample = any_sample};
    r = rollup_new(p, &nothing);
    assert_int_equal(r->total.unknown, NOT_OF_PROGRAMS | bits(ROLLUP_PEAK, ROLLUP_TEMPORARY, ROLLUP_AGES));
    rollup_free(r);
    r = rollup_new(p, &old);
    for (int sort = ROLLUP_SORT_LIVE; sort <= ROLLUP_SORT_AGE; sort++)
        assert_false(rollup_sort_known((enum rollup_sort)sort, &r->total));
    rollup_free(r);
    p->images.at[0].peak_ns = BEGAN + 20 * SECOND; /* it had its peak before that moment */
    r = roll(p, ROLLUP_BY_OWNER, ROLLUP_SORT_PEAK);
    assert_true(rollup_known(&r->total, ROLLUP_PEAK));
    rollup_free(r);
    profile_free(p);
}

static void ages_end_with_the_process(void **state)
{
    (void)state;
    struct profile *p = shop(1);
    p->taken_ns += 3600 * SECOND; /* the recording went on */
    struct rollup *r = roll(p, ROLLUP_BY_STACK, ROLLUP_SORT_AGE);
    assert_int_equal(r->total.oldest_ns, 152 * SECOND);
    rollup_free(r);
    /* Only its ledger is left, read an hour later: the youngest sample, 0 s old, is the last that it tells of. */
    p->images.at[0].taken_ns += 3600 * SECOND;
    vec_each (struct profile_sample, s, &p->samples)
        s->born_ns -= 5 * SECOND;
    *vec_push(&p->frees) = (struct profile_free){.freed_ns = TAKEN - 3 * SECOND};
    profile_end(p);
    assert_int_equal(p->images.at[0].taken_ns, TAKEN - 3 * SECOND);
    assert_int_equal(p->taken_ns, TAKEN - 3 * SECOND);
    /* It said when it exited; but nothing can have come later than the reading, or earlier than what happened. */
    const uint64_t ended[] = {TAKEN + 60 * SECOND, TAKEN + 7200 * SECOND, TAKEN - 60 * SECOND};
    const uint64_t taken[] = {TAKEN + 60 * SECOND, TAKEN + 3600 * SECOND, TAKEN - 3 * SECOND};
    for (int k = 0; k < 3; k++) {
        p->images.at[0].taken_ns = TAKEN + 3600 * SECOND;
        p->images.at[0].ended_ns = ended[k];
        profile_end(p);
        assert_int_equal(p->images.at[0].taken_ns, taken[k]);
    }
    profile_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST("a filter that nothing fits leaves as much as can go unseen", a_filter_that_nothing_fits),
        TEST("a run of which nothing was sampled leaves as much as its period says",
             a_run_that_nothing_was_sampled_of),
        TEST("of the past, the peak, what was temporary, and ages are not known", the_past),
        TEST("ages are counted to the end of the process, as far as its ledger tells",
             ages_end_with_the_process),
        TEST("where nothing was seen, there is an upper bound", unseen_rows_have_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
