/* SPDX-License-Identifier: BSD-2-Clause */
/* The size of a page, from counts in KiB and in pages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/kernel/page_bytes.h"

#define VMSTAT "nr_free_pages 1964657\nnr_anon_pages 99349\nnr_mapped 19433\nnr_active_file 522709\n"

static void sizes(void **state)
{
    (void)state;
    static const char meminfo[] = "MemFree: 17770760 kB\nActive(file): 2090836 kB\nAnonPages: 399396 kB\n"
                                  "Mapped: 77732 kB\n";
    assert_int_equal(page_bytes_find(meminfo, VMSTAT), 4096);
    assert_int_equal(
        page_bytes_find("AnonPages: 6358000 kB\nMapped: 1243000 kB\nActive(file): 33453376 kB\n", VMSTAT),
        65536);
    assert_int_equal(page_bytes_find("AnonPages: 1589584 kB\n", "nr_anon_pages 99349\n"), 16384);
}

static void not_known(void **state)
{
    (void)state;
    assert_int_equal(page_bytes_find(NULL, VMSTAT), 0);
    assert_int_equal(page_bytes_find("AnonPages: 1 kB\n", NULL), 0);
    assert_int_equal(page_bytes_find("", ""), 0);
    assert_int_equal(page_bytes_find("AnonPages: 397396 kB\nMapped: 1243000 kB\n", VMSTAT), 0);
    assert_int_equal(page_bytes_find("AnonPages: 99349 kB\n", VMSTAT), 0);
    assert_int_equal(page_bytes_find("AnonPages: 99999999999999999999999 kB\n", VMSTAT), 0);
    assert_true(page_bytes_possible(4096) && page_bytes_possible(65536));
    assert_false(page_bytes_possible(0) || page_bytes_possible(4097) ||
                 page_bytes_possible(UINT64_C(1) << 40));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes),
        cmocka_unit_test(not_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
