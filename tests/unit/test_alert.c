/* SPDX-License-Identifier: BSD-2-Clause */
/* Conditions of alerts: what they say, and when they are told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "query/alert.h"

#define SECOND 1000000000ull
#define HOUR   (3600 * SECOND)

static struct alert parsed(const char *text)
{
    struct alert a;
    struct error e = {""};
    if (alert_parse(&a, text, &e, NULL))
        fail_msg("%s", e.text);
    return a;
}

static void terms_are_read(void **state)
{
    (void)state;
    struct alert a = parsed(" live > 1.5GiB for 5m or growing or  growing for 0s");
    assert_int_equal(a.n, 3);
    assert_int_equal(a.terms[0].kind, ALERT_LIVE_ABOVE);
    assert_int_equal(a.terms[0].bytes, 3ull << 29);
    assert_int_equal(a.terms[0].for_ns, 300 * SECOND);
    assert_string_equal(a.terms[0].text, "live > 1.5GiB for 5m");
    assert_int_equal(a.terms[1].kind, ALERT_GROWING);
    assert_int_equal(a.terms[1].for_ns, HOUR);
    assert_int_equal(a.terms[2].for_ns, 0);
    alert_release(&a);
}

struct step {
    uint64_t seconds;
    bool holds, told;
};

/* Bytes are 2 when it holds, else 1; growth lasts for an hour, else for a second less. */
static void judge(const char *text, const struct step *steps, size_t n)
{
    struct alert a = parsed(text);
    struct alert_state s = {0};
    for (size_t i = 0; i < n; i++) {
        struct alert_facts f = {.time_ns = (1000000 + steps[i].seconds) * SECOND,
                                .live_bytes = steps[i].holds ? 2 : 1,
                                .growing_ns = steps[i].holds ? HOUR : HOUR - SECOND};
        if (alert_judge(&a.terms[0], &s, &f) != steps[i].told)
            fail_msg("%s at %u s", text, (unsigned)steps[i].seconds);
    }
    alert_release(&a);
}
#define JUDGE(text, ...)                                                                                     \
    judge(text, (const struct step[]){__VA_ARGS__},                                                          \
          sizeof((const struct step[]){__VA_ARGS__}) / sizeof(struct step))

static void told_once_and_again(void **state)
{
    (void)state;
    JUDGE("live>1", {0, true, true}, {1, true, false}, {2, false, false}, {3, true, true}, {4, true, false});
    JUDGE("live>1", {0, false, false}, {1, true, true}, {1, true, false});
}

static void it_must_last(void **state)
{
    (void)state;
    JUDGE("live>1 for 10s", {0, true, false}, {9, true, false}, {10, true, true}, {90, true, false});
    JUDGE("live>1 for 10s", {0, true, false}, {9, false, false}, {10, true, false}, {20, true, true});
}

/* What hovers about the limit is told once. */
static void to_be_over_it_must_last_too(void **state)
{
    (void)state;
    JUDGE("live>1 for 10s", {0, true, false}, {10, true, true}, {11, false, false}, {12, true, false},
          {22, true, false}, {30, false, false}, {40, false, false}, {41, true, false}, {51, true, true});
    JUDGE("growing", {0, true, true}, {60, false, false}, {120, true, false}, {180, false, false},
          {3779, false, false}, {3780, false, false}, {3800, true, true});
    JUDGE("growing", {0, true, true}, {180, false, false}, {3779, false, false}, {3779, true, false});
}

static void clocks_go_back(void **state)
{
    (void)state;
    JUDGE("live>1 for 10s", {100, true, false}, {50, true, false}, {59, true, false}, {60, true, true});
    JUDGE("live>1 for 10s", {100, true, false}, {110, true, true}, {50, true, false}, {70, true, false});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(terms_are_read), cmocka_unit_test(told_once_and_again),
        cmocka_unit_test(it_must_last),   cmocka_unit_test(to_be_over_it_must_last_too),
        cmocka_unit_test(clocks_go_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
