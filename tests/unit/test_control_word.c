/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How the agent applies the word of the control page. The stub of writer_add_period() takes the place of a thread that
 * is interrupted in the middle, while the page changes again and other threads apply the new word.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/process.c"

#define PERIODS 8

struct process process;
__thread struct thread thread_self;
bool clock_is_tsc = true;
const struct sites *const sites;

static struct ledger_header header;
static struct ledger_period records[PERIODS];
static struct ledger_control page;
/* While record i is added, the page changes to next_words[i]; 0: it does not change. */
static uint64_t next_words[PERIODS];

uint64_t clock_ticks_cold(void)
{
    return 0;
}

uint32_t writer_add_period(uint64_t period_bytes, uint64_t ticks)
{
    uint32_t at = (uint32_t)header.regions[LEDGER_PERIODS].used++;
    assert_in_range(at, 0, PERIODS - 1);
    records[at] = (struct ledger_period){period_bytes, ticks};
    if (next_words[at]) {
        page.word = next_words[at];
        process_apply_control();
    }
    return at;
}

static int begin(void **state)
{
    (void)state;
    __builtin_memset(&header, 0, sizeof(header));
    __builtin_memset(next_words, 0, sizeof(next_words));
    records[0].period_bytes = LEDGER_PERIOD_DEFAULT;
    header.regions[LEDGER_PERIODS].used = 1;
    page = (struct ledger_control){.magic = LEDGER_CONTROL_MAGIC};
    process.stage = LEDGER_STAGE_MADE;
    process.ledger.header = &header;
    process.ledger.control = &page;
    process.ledger.regions[LEDGER_PERIODS] = (char *)records;
    agent_state =
        (struct agent_state){.period_at_start = LEDGER_PERIOD_DEFAULT, .in_force = LEDGER_PERIOD_DEFAULT};
    return 0;
}

static void set(uint64_t word)
{
    page.word = word;
    process_apply_control();
}

static void check_in_force(uint64_t period, uint64_t switches)
{
    assert_int_equal(process_period(agent_state.in_force), period);
    assert_int_equal(records[process_period_index(agent_state.in_force)].period_bytes, period);
    assert_int_equal(agent_state.in_force & (LEDGER_CONTROL_OFF | LEDGER_CONTROL_FREE_STACKS), switches);
    assert_int_equal(header.off_since_ticks != 0, switches != 0);
    assert_int_equal(agent_state.control_word, page.word);
}

static void one_word(void **state)
{
    (void)state;
    set(4096);
    check_in_force(4096, 0);
    set(LEDGER_CONTROL_OFF | 4096);
    check_in_force(4096, LEDGER_CONTROL_OFF);
    /* flags that are neither switches nor a part of the period */
    set(LEDGER_CONTROL_TRACE_OFF | LEDGER_CONTROL_ALLOC_OFF | 4096);
    check_in_force(4096, 0);
    set(0);
    check_in_force(LEDGER_PERIOD_DEFAULT, 0);
    assert_int_equal(header.regions[LEDGER_PERIODS].used, 2);
}

static void invalid(void **state)
{
    (void)state;
    set(4096);
    set(LEDGER_PERIOD_MAX + 1);
    check_in_force(4096, 0);
}

static void newer_period(void **state)
{
    (void)state;
    next_words[1] = 8192;
    next_words[2] = 16384;
    set(4096);
    check_in_force(16384, 0);
}

static void switched_off(void **state)
{
    (void)state;
    next_words[1] = LEDGER_CONTROL_OFF | 8192;
    set(4096);
    check_in_force(8192, LEDGER_CONTROL_OFF);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(one_word, begin),
        cmocka_unit_test_setup(invalid, begin),
        {"a thread that was interrupted does not undo a newer period", newer_period, begin, NULL, NULL},
        {"nor does it switch sampling on again", switched_off, begin, NULL, NULL},
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
