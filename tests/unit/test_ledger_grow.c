/* SPDX-License-Identifier: BSD-2-Clause */
/* src/wire/ledger_grow: after a refusal, 1,023 requests are refused without a check; the next one is checked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "wire/ledger_grow.h"

#define BYTES           (1u << 20)
#define WIDE            LEDGER_STACKS /* a table with room for growth */
#define FULL            LEDGER_FRAMES /* a table at its limit */
#define TRIES_PER_CHECK 1024

static struct ledger_header header;
static struct ledger_control control;

static struct ledger fresh_ledger(void)
{
    struct ledger l = {.header = &header, .control = &control};
    header = (struct ledger_header){.limit_bytes = BYTES};
    header.regions[WIDE] = (struct ledger_region){.limit_bytes = BYTES, .record_bytes = LEDGER_PAGE_BYTES};
    header.regions[FULL] = (struct ledger_region){.record_bytes = sizeof(uint64_t)};
    l.regions[WIDE] = mmap(NULL, BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(l.regions[WIDE], MAP_FAILED);
    control.word = 0;
    return l;
}

static bool append_page(struct ledger *l)
{
    return ledger_append(l, WIDE, 1) != LEDGER_NONE;
}

static void refuse(struct ledger *l)
{
    control.word = LEDGER_CONTROL_SEALED;
    assert_false(append_page(l));
    control.word = 0;
}

/* Refuses once; the next request that is checked succeeds. */
static void refuse_for_a_while(struct ledger *l)
{
    int tries = 1;
    refuse(l);
    while (!append_page(l) && tries <= TRIES_PER_CHECK)
        tries++;
    assert_int_equal(tries, TRIES_PER_CHECK);
}

static void room_is_found_again(void **state)
{
    struct ledger l = fresh_ledger();
    (void)state;
    assert_true(append_page(&l));
    refuse_for_a_while(&l);
    for (int i = 0; i < 8; i++)
        assert_true(append_page(&l));
    assert_int_equal(header.full, LEDGER_FULL_SECCOMP);
    assert_int_equal(header.losses[LEDGER_LOST_GROWTH], TRIES_PER_CHECK);
    munmap(l.regions[WIDE], BYTES);
}

static void full_table_stops_no_other(void **state)
{
    struct ledger l = fresh_ledger();
    (void)state;
    refuse(&l);
    for (int i = 1; i < TRIES_PER_CHECK; i++)
        assert_false(append_page(&l));
    for (int i = 0; i < 8; i++) {
        assert_true(append_page(&l));
        assert_int_equal(ledger_append(&l, FULL, 1), LEDGER_NONE);
    }
    munmap(l.regions[WIDE], BYTES);
}

static void refusal_after_a_full_table_delays_the_next_check(void **state)
{
    struct ledger l = fresh_ledger();
    (void)state;
    assert_int_equal(ledger_append(&l, FULL, 1), LEDGER_NONE);
    assert_int_equal(header.full, LEDGER_FULL_LIMIT);
    refuse_for_a_while(&l);
    assert_true(append_page(&l));
    munmap(l.regions[WIDE], BYTES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(room_is_found_again),
        cmocka_unit_test(full_table_stops_no_other),
        cmocka_unit_test(refusal_after_a_full_table_delays_the_next_check),
    };
    return cmocka_run_group_tests_name("ledger_grow", tests, NULL, NULL);
}
