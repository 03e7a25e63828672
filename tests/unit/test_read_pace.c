/* SPDX-License-Identifier: BSD-2-Clause */
/* src/run/read_pace: how often the recorder reads, alone and beside many. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "run/read_pace.h"

#define MS     1000000ull
#define SECOND (1000 * MS)

struct counts {
    unsigned points, moments;
    struct read_pace all;
    uint64_t longest_ns; /* time between two points */
};

/* Follows `images` from 0 to `until_ns`. A point costs `cost_ns`, a moment 3 times as much. Counts those of one. */
static struct counts follow(unsigned images, uint64_t cost_ns, uint64_t until_ns)
{
    struct image_pace i = image_pace_begin(0);
    struct counts c = {0};
    for (uint64_t now = 0, last = 0; now < until_ns; last = now, now = i.next_point_ns) {
        c.points++;
        if (now - last > c.longest_ns)
            c.longest_ns = now - last;
        c.all.points_ns += (images - 1) * cost_ns; /* all have the same times */
        image_pace_point(&i, &c.all, now, cost_ns);
        if (now < i.next_moment_ns)
            continue;
        c.moments++;
        c.all.moments_ns += (images - 1) * 3 * cost_ns;
        image_pace_moment(&i, &c.all, now, 3 * cost_ns);
    }
    return c;
}

static void alone_intervals_are_at_most_a_32nd_of_the_age(void **state)
{
    (void)state;
    struct counts c = follow(1, MS / 20, 10 * SECOND);
    assert_in_range(c.points, 180, 200);
    assert_in_range(c.moments, 55, 65); /* at points only */
    assert_int_equal(c.longest_ns, 160 * MS);
}

static void many_share_what_all_may_take(void **state)
{
    (void)state;
    uint64_t for_points = 60 * SECOND / 250 + 20 * MS, for_moments = 60 * SECOND / 100 + 20 * MS;
    struct counts one = follow(1, MS / 20, 60 * SECOND), two = follow(2, MS / 20, 60 * SECOND),
                  many = follow(500, MS / 20, 60 * SECOND);
    assert_int_equal(two.points, one.points);
    assert_int_equal(two.moments, one.moments);
    assert_true(500 * one.all.points_ns > 10 * for_points && 500 * one.all.moments_ns > 10 * for_moments);
    assert_in_range(many.all.points_ns, for_points / 2, 3 * for_points);
    assert_in_range(many.all.moments_ns, for_moments / 2, 3 * for_moments);
    assert_true(many.points > 20 && many.moments > 10 && many.longest_ns <= 10 * SECOND);
}

static void after_a_costly_moment_the_next_one_is_twice_as_old(void **state)
{
    (void)state;
    struct read_pace all = {0};
    struct image_pace i = image_pace_begin(0);
    image_pace_moment(&i, &all, 0, 0);
    assert_int_equal(i.next_moment_ns, 100 * MS);
    image_pace_moment(&i, &all, SECOND, SECOND);
    assert_int_equal(i.next_moment_ns, 1800 * MS);
}

static void thinning_doubles_the_steps(void **state)
{
    (void)state;
    struct read_pace all = {0};
    struct image_pace i = image_pace_begin(0);
    image_pace_thin(&i);
    image_pace_point(&i, &all, 0, 0);
    image_pace_moment(&i, &all, 0, 0);
    assert_int_equal(i.next_point_ns, 20 * MS);
    assert_int_equal(i.next_moment_ns, 200 * MS);
    for (int n = 0; n < 20; n++)
        image_pace_thin(&i);
    image_pace_point(&i, &all, 0, 0);
    assert_int_equal(i.next_point_ns, 10 * SECOND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alone_intervals_are_at_most_a_32nd_of_the_age),
        cmocka_unit_test(many_share_what_all_may_take),
        cmocka_unit_test(after_a_costly_moment_the_next_one_is_twice_as_old),
        cmocka_unit_test(thinning_doubles_the_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
