/* SPDX-License-Identifier: BSD-2-Clause */
/* src/tag/tag_control: which calls a rule makes fail, while some threads still use a rule that was replaced. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tag/tag_control.c"

static bool fails(uint64_t *calls, uint16_t serial, enum ledger_fail fail, uint32_t n)
{
    const struct ledger_action a = {.key = 1, .fail = (uint16_t)fail, .serial = serial, .n = n};
    return tag_control_fails(&a, calls);
}

/* A call under an old rule comes after calls under the new one: the new rule fails its first call, and no other. */
static void once_is_once(void **state)
{
    (void)state;
    for (uint32_t first = 0; first <= UINT16_MAX; first++) {
        const uint16_t old = (uint16_t)first, new = (uint16_t)(first + 1);
        uint64_t calls = 0;
        assert_true(fails(&calls, old, LEDGER_FAIL_NTH, 1));
        assert_false(fails(&calls, old, LEDGER_FAIL_NTH, 1));
        assert_true(fails(&calls, new, LEDGER_FAIL_NTH, 1));
        assert_false(fails(&calls, old, LEDGER_FAIL_NTH, 1));
        assert_false(fails(&calls, new, LEDGER_FAIL_NTH, 1));
    }
}

/* Calls under an old rule do not change which calls the new one makes fail, and do not fail themselves. */
static void late_calls_do_not_count(void **state)
{
    (void)state;
    uint64_t calls = 0;
    unsigned failed = 0;
    fails(&calls, 7, LEDGER_FAIL_EVERY, 3);
    for (unsigned i = 0; i < 30; i++) {
        failed += fails(&calls, 8, LEDGER_FAIL_EVERY, 3);
        assert_false(fails(&calls, 7, LEDGER_FAIL_EVERY, 1));
    }
    assert_int_equal(failed, 10);
}

/* A later rule counts from 0, also if the place missed many rules between the two. */
static void any_later_rule_counts_anew(void **state)
{
    (void)state;
    for (uint32_t later = 1; later <= UINT16_MAX - 1024; later++) {
        uint64_t calls = 0;
        assert_true(fails(&calls, 3, LEDGER_FAIL_NTH, 1));
        assert_true(fails(&calls, (uint16_t)(3 + later), LEDGER_FAIL_NTH, 1));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        {"a thread with an old rule does not let it begin anew", once_is_once},
        {"calls under an old rule are none of the new one's", late_calls_do_not_count},
        {"a later rule counts from 0", any_later_rule_counts_anew},
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
