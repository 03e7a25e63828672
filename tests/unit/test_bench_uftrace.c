/* SPDX-License-Identifier: BSD-2-Clause */
/* uftrace's records are counted one by one; what is no record of a function is not taken for one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/hooks/uftrace/bench_uftrace.h"

#define ENTRY 0x7f6289ef011a0028u /* as uftrace 0.13 wrote them */
#define EXIT  0x7f6289ef011a0029u
#define LOST  (UINT64_C(1234) << 16 | 5 << 3 | 2)

static void records_and_losses_are_counted(void **state)
{
    const uint64_t records[][2] = {{1, ENTRY}, {2, EXIT}, {3, LOST}, {4, ENTRY}, {5, EXIT}};
    struct bench_uftrace_counts c = {.records = 0};
    (void)state;
    assert_int_equal(bench_uftrace_count(&c, records, sizeof(records)), sizeof(records));
    assert_true(c.records == 4 && c.lost == 1234 && !c.is_odd);
    assert_int_equal(bench_uftrace_count(&c, records, sizeof(records) - 1), sizeof(records) - 16);
    assert_true(c.records == 7 && c.lost == 2468 && !c.is_odd);
    assert_int_equal(bench_uftrace_count(&c, records, 15), 0);
}

static void other_records_are_odd(void **state)
{
    const uint64_t others[] = {ENTRY ^ 1 << 3, ENTRY | 4, ENTRY | 3, 0};
    (void)state;
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        const uint64_t record[2] = {1, others[i]};
        struct bench_uftrace_counts c = {.records = 0};
        bench_uftrace_count(&c, record, sizeof(record));
        assert_true(c.is_odd && !c.records);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_and_losses_are_counted),
        cmocka_unit_test(other_records_are_odd),
    };
    return cmocka_run_group_tests_name("bench_uftrace", tests, NULL, NULL);
}
