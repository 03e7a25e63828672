/* SPDX-License-Identifier: BSD-2-Clause */
/* src/model/kernel/event_texts: each text and each stack has one number, and is found by it. */
#include "test_kernel.h"

#include "model/kernel/event_texts.h"

#define TEXTS 5000u /* more than are compared before the map is searched */

static void write_name(char name[static 32], uint32_t k)
{
    /* names that share their first letters and their length share a slot */
    snprintf(name, 32, k % 2 ? "same-begin-%06u" : "%u-differs", k);
}

static void one_number_for_each_text(void **state)
{
    char name[32];
    struct event_texts t;
    (void)state;
    event_texts_init(&t);
    for (int round = 0; round < 3; round++)
        for (uint32_t k = 0; k < TEXTS; k++) {
            write_name(name, k);
            assert_int_equal(event_texts_number(&t, name), k);
        }
    assert_int_equal(t.texts.len, TEXTS);
    for (uint32_t k = 0; k < TEXTS; k++) {
        write_name(name, k);
        assert_string_equal(t.texts.at[k], name);
    }
    assert_int_equal(event_texts_number(&t, ""), TEXTS);
    assert_int_equal(event_texts_number(&t, ""), TEXTS);
    event_texts_release(&t);
}

static void many_names_of_programs(void **state)
{
    char name[32];
    struct event_texts t;
    (void)state;
    event_texts_init(&t);
    assert_int_equal(event_texts_number(&t, "a cache"), 0); /* is none of them */
    assert_int_equal(event_texts_comm(&t, NULL), event_texts_comm(&t, ""));
    for (uint32_t k = 1; k < EVENT_TEXTS_COMMS_MAX; k++) {
        write_name(name, k);
        assert_int_equal(event_texts_comm(&t, name), k + 1);
    }
    const uint32_t others = event_texts_comm(&t, "one more");
    assert_int_equal(others, EVENT_TEXTS_COMMS_MAX + 1);
    assert_string_equal(t.texts.at[others], EVENT_TEXTS_OTHERS);
    assert_int_equal(event_texts_comm(&t, "and another"), others);
    write_name(name, 7);
    assert_int_equal(event_texts_comm(&t, name), 8);                  /* known before */
    assert_int_equal(event_texts_number(&t, "one more"), others + 1); /* caches have no limit */
    assert_int_equal(event_texts_comm(&t, "one more"), others + 1);
    event_texts_release(&t);
}

static void stacks(void **state)
{
    const uint64_t callers[] = {1, 2, 3, 4};
    struct event_texts t;
    uint32_t depth;
    (void)state;
    event_texts_init(&t);
    assert_int_equal(event_texts_stack(&t, NULL, 4), 0);
    assert_int_equal(event_texts_stack(&t, callers, 0), 0);
    assert_null(event_texts_callers(&t, 0, &depth));
    assert_int_equal(depth, 0);
    for (int round = 0; round < 2; round++)
        for (uint32_t n = 1; n <= 4; n++) {
            const uint32_t number = event_texts_stack(&t, callers, n);
            assert_int_equal(number, n);
            assert_memory_equal(event_texts_callers(&t, number, &depth), callers, n * sizeof(*callers));
            assert_int_equal(depth, n);
        }
    assert_int_equal(event_texts_stack(&t, callers + 1, 3), 5); /* not the end of another one */
    event_texts_release(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST("equal texts have one number", one_number_for_each_text),
        TEST("from a number on, names of programs are one", many_names_of_programs),
        TEST("equal stacks have one number", stacks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
