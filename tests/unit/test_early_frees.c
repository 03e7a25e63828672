/* SPDX-License-Identifier: BSD-2-Clause */
/* Frees whose time is before that of their block's allocation (model/trace/early_frees.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "model/trace/early_frees.h"

static struct early_free free_of(uint64_t address, uint64_t time_ns, uint32_t cpu)
{
    return (struct early_free){
        .image = 1, .address = address, .time_ns = time_ns, .cpu = cpu, .thread = 7, .location = 3};
}

static void only_of_its_block(void **state)
{
    struct early_frees e = {.next = 0};
    struct early_free f = free_of(0x1000, 5000, 1), out;
    (void)state;
    assert_false(early_frees_take(&e, 1, 0, 0, 5, &out)); /* none was noted, and the trace has just begun */
    early_frees_note(&e, &f);
    assert_false(early_frees_take(&e, 1, 0x1000, 1, 5010, &out)); /* its own CPU would have been in order */
    assert_false(early_frees_take(&e, 2, 0x1000, 0, 5010, &out));
    assert_false(early_frees_take(&e, 1, 0x1010, 0, 5010, &out));
    assert_false(early_frees_take(&e, 1, 0x1000, 0, 5000 + EARLY_FREES_NS, &out));
    assert_true(early_frees_take(&e, 1, 0x1000, 0, 5000 + EARLY_FREES_NS - 1, &out));
    assert_int_equal(out.thread, 7);
    assert_int_equal(out.location, 3);
    assert_false(early_frees_take(&e, 1, 0x1000, 0, 5010, &out)); /* once */
}

static void the_latest(void **state)
{
    struct early_frees e = {.next = 0};
    struct early_free out;
    (void)state;
    for (uint64_t k = 0; k <= EARLY_FREES; k++) {
        const struct early_free f = free_of(0x1000 + 16 * k, 5000 + k, 1);
        early_frees_note(&e, &f);
    }
    assert_false(early_frees_take(&e, 1, 0x1000, 0, 5100, &out));
    for (uint64_t k = 1; k <= EARLY_FREES; k++)
        assert_true(early_frees_take(&e, 1, 0x1000 + 16 * k, 0, 5100, &out));
}

static void failed_realloc(void **state)
{
    struct early_frees e = {.next = 0};
    struct early_free f = free_of(0x1000, 5000, 1), out;
    (void)state;
    f.reallocates = true;
    early_frees_note(&e, &f);
    early_frees_take_back(&e, 1, 8);
    early_frees_take_back(&e, 1, 7);
    assert_false(early_frees_take(&e, 1, 0x1000, 0, 5010, &out));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_of_its_block),
        cmocka_unit_test(the_latest),
        cmocka_unit_test(failed_realloc),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
