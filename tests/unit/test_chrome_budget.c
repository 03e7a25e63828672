/* SPDX-License-Identifier: BSD-2-Clause */
/* src/view/formats/chrome_budget: the longest slices are taken, and never more bytes than there are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

#include "view/formats/chrome_budget.h"

#define N 20000u

static uint64_t state_of_random = 1;

static uint64_t next_random(uint64_t below)
{
    state_of_random = state_of_random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (state_of_random >> 33) % below;
}

struct result {
    uint64_t slices, instants, bytes, longest_left, shortest_taken;
    struct chrome_left_out left;
};

static uint64_t durations[N], sizes[N];

/* Offers slices and instants in turns, and takes what is given. */
static struct result run(uint64_t most, uint64_t n_slices, uint64_t n_instants)
{
    struct result r = {.shortest_taken = UINT64_MAX};
    struct chrome_budget *b = chrome_budget_new(most);
    for (uint64_t i = 0; i < n_slices; i++)
        chrome_budget_offer_slice(b, durations[i], sizes[i]);
    for (uint64_t i = 0; i < n_instants; i++)
        chrome_budget_offer_instant(b, sizes[i]);
    chrome_budget_decide(b, 100, 1000000, 0);
    for (uint64_t i = 0; i < n_slices; i++) {
        const bool taken = chrome_budget_take_slice(b, durations[i], sizes[i]);
        r.slices += taken;
        r.bytes += taken ? sizes[i] : 0;
        if (taken)
            r.shortest_taken = durations[i] < r.shortest_taken ? durations[i] : r.shortest_taken;
        else
            r.longest_left = durations[i] > r.longest_left ? durations[i] : r.longest_left;
    }
    for (uint64_t i = 0; i < n_instants; i++)
        if (chrome_budget_take_instant(b, sizes[i])) {
            r.instants++;
            r.bytes += sizes[i];
        }
    r.left = chrome_budget_left_out(b);
    chrome_budget_free(b);
    assert_true(r.bytes + 100 <= most);
    assert_int_equal(r.left.slices, n_slices - r.slices);
    assert_int_equal(r.left.instants, n_instants - r.instants);
    return r;
}

static void the_longest_are_taken(void **state)
{
    (void)state;
    uint64_t all = 0;
    for (uint64_t i = 0; i < N; i++) {
        durations[i] = next_random(i % 3 ? 1000000 : 20); /* many are alike */
        sizes[i] = 90 + next_random(100);
        all += sizes[i];
    }
    for (uint64_t part = 1; part <= 16; part *= 2) {
        const struct result r = run(all / part + 200, N, 0);
        assert_true(r.shortest_taken >= r.longest_left);
        assert_int_equal(r.left.shortest_ns, r.longest_left);
        assert_int_equal(r.slices == N, part == 1);
        assert_true(r.bytes >= all / part - 2 * 190); /* no more is left unused than a record may have */
    }
    const struct result none = run(100, N, N);
    assert_int_equal(none.slices + none.instants, 0);
}

static void slices_and_instants_share(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < N; i++) {
        durations[i] = i;
        sizes[i] = 100;
    }
    struct result r = run(100 * N + 100, N / 2, N / 2); /* all fit */
    assert_int_equal(r.slices + r.instants, N);
    r = run(100 * N / 2 + 100, N, N); /* of each a part */
    assert_true(r.slices >= N / 3 - 1 && r.instants >= N / 12);
    r = run(100 * N / 2 + 100, 10, N); /* few slices: the rest is the instants' */
    assert_int_equal(r.slices, 10);
    assert_true(r.instants >= N / 3);
}

/* A counter has at most two values in a step. */
static void steps_of_counters_fit(void **state)
{
    (void)state;
    for (uint64_t tracks = 1; tracks <= 100000; tracks *= 10) {
        struct chrome_budget *b = chrome_budget_new(1000000);
        for (uint64_t i = 0; i < 200000; i++)
            chrome_budget_offer_counter(b, 80);
        chrome_budget_decide(b, 0, 1000000000, tracks);
        const uint64_t step = chrome_budget_step(b), steps = 1000000000 / step + 1;
        assert_true(step > 0);
        if (tracks <= 100)
            assert_true(steps * 2 * tracks * 80 <= 1000000 / 10);
        uint64_t taken = 0;
        for (uint64_t i = 0; i < 200000; i++)
            taken += chrome_budget_take_counter(b, 80);
        assert_true(taken && taken * 80 <= 1000000 / 10);
        chrome_budget_free(b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_longest_are_taken),
        cmocka_unit_test(slices_and_instants_share),
        cmocka_unit_test(steps_of_counters_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
