/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * src/store, the history of an image: what was so at a moment is what is loaded for it, however often it was thinned.
 */
#include "test_store.h"

/* What was so at a moment: the sums of the cells, and the live samples. */
struct past {
    uint64_t time_ns;
    struct VEC(struct profile_cell) cells;
    struct VEC(struct profile_sample) samples;
};
struct history VEC(struct past);

static void remember(struct history *h, const struct profile *p)
{
    struct past *it = vec_push(h);
    it->time_ns = p->taken_ns;
    vec_each (const struct profile_cell, c, &p->cells)
        *vec_push(&it->cells) = *c;
    vec_each (const struct profile_sample, v, &p->samples)
        *vec_push(&it->samples) = *v;
}

static bool knows_sample(const struct past *it, const struct profile_sample *v)
{
    vec_each (const struct profile_sample, known, &it->samples)
        if (known->serial == v->serial)
            return known->address == v->address && known->size_bytes == v->size_bytes &&
                   known->cell == v->cell;
    return false;
}

/* What is faster to load must be the same: all figures of the cells but their lifetimes, and their images. */
static void check_figures(const struct profile *p, const uint64_t *at)
{
    struct profile *few;
    assert_ok(recording_load_without(&few, file, at, RECORDING_POINTS | RECORDING_LIFETIMES, &err));
    assert_true(profile_valid(few) && !few->points.len);
    assert_int_equal(few->images.len, p->images.len);
    assert_int_equal(few->cells.len, p->cells.len);
    assert_int_equal(few->samples.len, p->samples.len);
    for (size_t i = 0; i < p->images.len; i++) {
        assert_int_equal(few->images.at[i].taken_ns, p->images.at[i].taken_ns);
        assert_int_equal(few->images.at[i].rss_anon_bytes, p->images.at[i].rss_anon_bytes);
    }
    for (size_t i = 0; i < p->cells.len; i++) {
        const struct profile_cell *a = &few->cells.at[i], *b = &p->cells.at[i];
        assert_memory_equal(&a->allocated, &b->allocated, 3 * sizeof(a->allocated)); /* freed, at_peak */
        assert_int_equal(a->temporary_samples, b->temporary_samples);
        assert_true(a->temporary_bytes == b->temporary_bytes && a->period_bytes == b->period_bytes);
        assert_true(a->image == b->image && a->stack == b->stack && a->thread == b->thread);
    }
    profile_free(few);
}

/* Loads the file as of `at` and compares it with what was so at the moment it says it is from, which it returns. */
static uint64_t check_past(const struct history *h, uint64_t at)
{
    struct profile *p;
    assert_ok(recording_load(&p, file, &at, &err));
    assert_true(profile_valid(p) && p->images.len == 1);
    check_figures(p, &at);
    uint64_t moment = p->images.at[0].taken_ns;
    const struct past *it = h->at;
    for (; it < h->at + h->len && it->time_ns != moment; it++)
        ;
    assert_true(it < h->at + h->len && moment <= at);
    assert_int_equal(p->cells.len, it->cells.len);
    for (size_t i = 0; i < it->cells.len; i++) {
        const struct profile_cell *is = &p->cells.at[i], *was = &it->cells.at[i];
        assert_memory_equal(&is->allocated, &was->allocated, sizeof(was->allocated));
        assert_memory_equal(&is->freed, &was->freed, sizeof(was->freed));
        assert_int_equal(is->size_class, was->size_class);
    }
    vec_each (const struct profile_sample, v, &p->samples)
        assert_true(knows_sample(it, v));
    vec_each (const struct profile_free, f, &p->frees)
        assert_true(f->freed_ns <= moment);
    vec_each (const struct profile_point, q, &p->points)
        assert_true(q->time_ns <= at);
    profile_free(p);
    return moment;
}

static void the_past_is_what_it_was_before_and_after_thinning(void **state)
{
    (void)state;
    uint64_t seed = 14;
    struct history h = {0};
    struct recording *r = create();
    struct profile *p = new_image(&seed, 42);
    for (int step = 0; step < 60; step++) {
        struct profile_point q = {.time_ns = p->taken_ns, .live_bytes = step, .rss_anon_bytes = 7};
        remember(&h, p);
        assert_ok(recording_put_point(r, 42, &q, p, NULL, &err));
        q.time_ns += 5;
        assert_ok(recording_put_point(r, 42, &q, NULL, NULL, &err));
        grow(p, &seed, 2);
    }
    assert_ok(recording_put_image(r, p, false, &err));
    static const size_t left[] = {60, 24, 16, 13, 13}; /* closer near the beginning */
    for (size_t thinned = 0; thinned < sizeof(left) / sizeof(*left); thinned++) {
        uint64_t last = 0;
        size_t moments = 0;
        assert_ok(recording_commit(r, &err));
        for (size_t i = 0; i < h.len; i++) {
            uint64_t moment = check_past(&h, h.at[i].time_ns + i % 10);
            assert_true(thinned || moment == h.at[i].time_ns);
            moments += moment != last;
            last = moment;
        }
        assert_int_equal(moments, left[thinned]);
        assert_int_equal(last, h.at[59].time_ns);
        assert_int_equal(check_past(&h, h.at[0].time_ns), h.at[0].time_ns);
        assert_ok(recording_thin_points(r, 42, &err));
    }
    assert_ok(recording_close(r, &err));
    vec_each (struct past, it, &h) {
        vec_release(&it->cells);
        vec_release(&it->samples);
    }
    vec_release(&h);
    profile_free(p);
}

/* Two images whose moments alternate: neither takes the other's. */
static void images_keep_their_own_past(void **state)
{
    (void)state;
    uint64_t seed = 20, at = T0 + 85; /* the moment before stays when the first one is thinned */
    struct recording *r = create();
    struct profile *p[2] = {new_image(&seed, 1), new_image(&seed, 2)}, *back;
    double expected[2] = {0}, is[2] = {0};
    for (int step = 0; step < 20; step++) {
        for (uint64_t i = 0; i < 2; i++) {
            struct profile_point q = {.time_ns = p[i]->taken_ns};
            assert_ok(recording_put_point(r, 1 + i, &q, p[i], NULL, &err));
            expected[i] = 0;
            vec_each (const struct profile_cell, c, &p[i]->cells)
                expected[i] += p[i]->taken_ns <= at ? c->allocated.bytes : 0;
            is[i] = expected[i] > 0 ? expected[i] : is[i];
            grow(p[i], &seed, 3);
        }
        if (step == 15)
            assert_ok(recording_thin_points(r, 1, &err));
    }
    assert_ok(recording_close(r, &err));
    assert_ok(recording_load(&back, file, &at, &err));
    assert_int_equal(back->images.len, 2);
    check_figures(back, &at);
    memcpy(expected, is, sizeof(is));
    memset(is, 0, sizeof(is));
    vec_each (const struct profile_cell, c, &back->cells)
        is[c->image] += c->allocated.bytes;
    assert_true(is[0] == expected[0] && is[1] == expected[1]);
    profile_free(back);
    profile_free(p[0]);
    profile_free(p[1]);
}

static void points_and_moments_stay_within_their_limits(void **state)
{
    (void)state;
    uint64_t seed = 15, last = 0;
    struct recording *r = create();
    struct profile *p = new_image(&seed, 42);
    size_t times = 0;
    bool thinned;
    for (int i = 0; i < 5000; i++) {
        struct profile_point q = {
            .time_ns = T0 + (uint64_t)i / 2 * 10, .live_bytes = i, .allocated_bytes = i};
        assert_ok(i ? 0 : recording_put_image(r, p, false, &err));
        assert_ok(recording_put_point(r, 42, &q, i % 3 ? NULL : p, &thinned, &err));
        times += thinned;
        raise_sums(&p->cells.at[0].allocated, &seed);
    }
    put(r, p);
    assert_ok(recording_close(r, &err));
    assert_in_range(times, 5, 50);
    assert_in_range(ask("SELECT count(*) FROM point"), RECORDING_POINTS_MAX / 4, RECORDING_POINTS_MAX);
    assert_in_range(ask("SELECT count(moment) FROM point"), RECORDING_MOMENTS_MAX / 4, RECORDING_MOMENTS_MAX);
    assert_int_equal(ask("SELECT count(*) FROM moment_cell WHERE moment NOT IN (SELECT moment FROM point"
                         " WHERE moment IS NOT NULL)"),
                     0);
    struct profile *back;
    assert_ok(recording_load(&back, file, NULL, &err));
    assert_true(back->points.at[0].live_bytes == 0);
    assert_true(back->points.at[back->points.len - 1].live_bytes == 4999);
    vec_each (const struct profile_point, q, &back->points) {
        assert_true(q->time_ns > last && q->live_bytes == q->allocated_bytes);
        last = q->time_ns;
    }
    profile_free(back);
    profile_free(p);
}

/* Three weeks, looked at each 10 s. */
static void all_of_a_long_life_is_known(void **state)
{
    (void)state;
    const uint64_t looks = 180000, step_ns = 10000000000;
    uint64_t seed = 16;
    struct recording *r = create();
    struct profile *p = new_image(&seed, 42);
    for (uint64_t i = 0; i < looks; i++) {
        struct profile_point q = {.time_ns = T0 + i * step_ns, .live_bytes = (double)i};
        assert_ok(recording_put_point(r, 42, &q, i % 2 ? NULL : p, NULL, &err));
    }
    put(r, p);
    assert_ok(recording_close(r, &err));
    int64_t widest = ask("SELECT max(gap) FROM (SELECT time_ns - lag(time_ns) OVER (ORDER BY time_ns) AS gap"
                         " FROM point WHERE moment IS NOT NULL)");
    assert_in_range(widest, 1, looks * step_ns / 40);
    widest =
        ask("SELECT max(gap) FROM (SELECT time_ns - lag(time_ns) OVER (ORDER BY time_ns) AS gap FROM point)");
    assert_in_range(widest, 1, looks * step_ns / 100);
    for (uint64_t minutes = 10; minutes < 30000; minutes += minutes / 2) {
        uint64_t at_ns = minutes * 60000000000, latest;
        char question[128];
        snprintf(question, sizeof(question),
                 "SELECT max(time_ns) FROM point WHERE moment IS NOT NULL AND"
                 " time_ns <= %" PRIu64,
                 T0 + at_ns);
        latest = (uint64_t)ask(question) - T0;
        assert_in_range(latest, at_ns / 2, at_ns);
    }
    profile_free(p);
}

static void a_moment_without_changes_has_the_sums_of_the_one_before(void **state)
{
    (void)state;
    uint64_t seed = 21;
    struct history h = {0};
    struct recording *r = create();
    struct profile *p = new_image(&seed, 42);
    for (int step = 0; step < 10; step++) {
        struct profile_point q = {.time_ns = p->taken_ns};
        remember(&h, p);
        assert_ok(step % 2 ? recording_put_same_moment(r, 42, &q, NULL, &err)
                           : recording_put_point(r, 42, &q, p, NULL, &err));
        if (step % 2)
            grow(p, &seed, 2);
        else
            p->taken_ns += 5;
    }
    assert_ok(recording_put_image(r, p, false, &err)); /* later than all moments */
    assert_ok(recording_close(r, &err));
    vec_each (struct past, it, &h) {
        assert_int_equal(check_past(&h, it->time_ns + 4), it->time_ns);
        vec_release(&it->cells);
        vec_release(&it->samples);
    }
    vec_release(&h);
    profile_free(p);
}

static void an_image_of_the_past_is_there_while_it_ran(void **state)
{
    (void)state;
    uint64_t seed = 16, at;
    struct recording *r = create();
    struct profile *p = new_image(&seed, 1), *back;
    struct profile_point q = {.time_ns = T0 + 10, .rss_anon_bytes = 4096};
    assert_refused(recording_put_point(r, 1, &q, NULL, NULL, &err), ENOENT, "before it is put");
    assert_ok(recording_put_point(r, 1, &q, p, NULL, &err));
    grow(p, &seed, 9);
    assert_ok(recording_put_image(r, p, true, &err));
    p->images.at[0].id = 2;
    p->images.at[0].began_ns = T0 + 15;
    assert_ok(recording_put_image(r, p, true, &err));
    assert_refused(recording_put_point(r, 1, &q, NULL, NULL, &err), ENOENT, "nor after its last");
    assert_ok(recording_close(r, &err));

    assert_ok(recording_load(&back, file, (at = T0, &at), &err));
    assert_true(!back->images.len && !back->cells.len && !back->threads.len && back->taken_ns == at);
    profile_free(back);
    assert_ok(recording_load(&back, file, (at = T0 + 5, &at), &err));
    assert_true(back->images.len == 1 && !back->cells.len && back->images.at[0].taken_ns == T0 + 1);
    profile_free(back);
    assert_ok(recording_load(&back, file, (at = T0 + 16, &at), &err));
    assert_true(back->images.len == 2 && back->cells.len == 20);
    const struct profile_image *i = &back->images.at[0];
    assert_true(i->past && back->images.at[1].past);
    assert_true(i->state == PROFILE_IMAGE_RUNNING && !i->peak_ns && i->peak_bytes == 0);
    assert_true(i->rss_anon_bytes == 4096 && i->taken_ns == T0 + 10 && !back->cells.at[0].at_peak.samples);
    profile_free(back);
    assert_ok(recording_load(&back, file, (at = T0 + 20, &at), &err));
    assert_true(back->images.len == 2 && back->cells.len == 2 * p->cells.len && back->points.len == 1);
    assert_false(back->images.at[0].past || back->images.at[1].past);
    profile_free(back);
    profile_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(the_past_is_what_it_was_before_and_after_thinning, empty_folder),
        cmocka_unit_test_teardown(images_keep_their_own_past, empty_folder),
        cmocka_unit_test_teardown(points_and_moments_stay_within_their_limits, empty_folder),
        cmocka_unit_test_teardown(all_of_a_long_life_is_known, empty_folder),
        cmocka_unit_test_teardown(a_moment_without_changes_has_the_sums_of_the_one_before, empty_folder),
        cmocka_unit_test_teardown(an_image_of_the_past_is_there_while_it_ran, empty_folder),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
