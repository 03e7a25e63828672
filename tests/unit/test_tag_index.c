/* SPDX-License-Identifier: BSD-2-Clause */
/* src/tag/places: each identity keeps the number that it was given first, however many come after it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tag/tag_index.h"

#define IDENTITIES 30000u

static uint64_t identity_of(uint32_t n)
{
    uint64_t mixed = (n + 1) * 0x9e3779b97f4a7c15u;
    return (mixed ^ mixed >> 29) * 0xbf58476d1ce4e5b9u | 1;
}

static void each_keeps_its_number(void **state)
{
    (void)state;
    tag_index_init();
    for (uint32_t n = 1; n <= IDENTITIES; n++) {
        assert_int_equal(tag_index_account(identity_of(n), 0), 0);
        assert_int_equal(tag_index_account(identity_of(n), n), 0);
        assert_int_equal(tag_index_account(identity_of(n), n + 1), n);
        for (uint32_t before = 1 + n % 211; before < n; before += 1009)
            assert_int_equal(tag_index_account(identity_of(before), 0), before);
    }
    for (uint32_t n = 1; n <= IDENTITIES; n++)
        assert_int_equal(tag_index_account(identity_of(n), 0), n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_keeps_its_number)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
