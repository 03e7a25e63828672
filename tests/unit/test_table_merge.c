/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows that have one text become one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/profile/estimate.h"
#include "model/table/table_merge.h"

enum { FUNCTION, PID, BYTES, GROWTH, CACHE, SIZES, NUMBER, LONGEST, FLAGS, ALIASES, LIVE };

static const struct table_column columns[] = {
    [FUNCTION] = {"function", TABLE_PLAIN, TABLE_TEXT},
    [PID] = {"pid", TABLE_PLAIN, TABLE_REAL},
    [BYTES] = {"bytes", TABLE_BYTES, TABLE_WHOLE},
    [GROWTH] = {"growth", TABLE_BYTES, TABLE_SIGNED},
    [CACHE] = {"cache", TABLE_PLAIN, TABLE_TEXT},
    [SIZES] = {"sizes", TABLE_BYTES, TABLE_HISTOGRAM},
    [NUMBER] = {"number", TABLE_PLAIN, TABLE_WHOLE},
    [LONGEST] = {"longest", TABLE_DURATION, TABLE_WHOLE, .merge_largest = true},
    [FLAGS] = {"flags", TABLE_PLAIN, TABLE_TEXT, .merge_words = '|'},
    [ALIASES] = {"aliases", TABLE_PLAIN, TABLE_TEXT, .merge_largest = true},
    [LIVE] = {"live", TABLE_BYTES, TABLE_ESTIMATE},
};

static struct table *begin(void **state)
{
    struct table *t = table_new("test", 1, columns, sizeof(columns) / sizeof(*columns));
    *state = t;
    return t;
}

static int end(void **state)
{
    table_free(*state);
    return 0;
}

static void add(struct table *t, const char *function, uint64_t bytes, const char *cache)
{
    table_row(t);
    table_text(t, FUNCTION, function);
    table_whole(t, BYTES, bytes);
    table_text(t, CACHE, cache);
}

static void holds(const struct table *t, uint32_t row, const char *function, uint64_t bytes,
                  const char *cache)
{
    assert_string_equal(table_at(t, row, FUNCTION)->text, function);
    assert_int_equal(table_at(t, row, BYTES)->whole, bytes);
    if (cache)
        assert_string_equal(table_at(t, row, CACHE)->text, cache);
    else
        assert_false(table_at(t, row, CACHE)->known);
}

static void rows_of_a_text_stand_where_the_first_stood(void **state)
{
    struct table *t = begin(state);
    add(t, "a", 1, "x");
    add(t, "b", 10, NULL);
    add(t, "a", 2, "x");
    add(t, "c", 100, "y");
    add(t, "b", 20, "z");
    add(t, "c", 200, "w");
    add(t, "c", 300, "w");
    add(t, "a", 4, NULL);
    table_merge(t, 1u << FUNCTION, BYTES);
    assert_int_equal(table_rows(t), 3);
    holds(t, 0, "a", 7, "x");
    holds(t, 1, "b", 30, "z");
    holds(t, 2, "c", 600, "w and others");
}

/* Of z there is most, in rows of which each is smaller than one of x. */
static void the_largest_is_named_if_its_rows_are_merged_first(void **state)
{
    struct table *t = begin(state);
    add(t, "a", 5, "y");
    add(t, "a", 9, "x");
    add(t, "b", 1, "x");
    add(t, "a", 8, "z");
    add(t, "a", 8, "z");
    add(t, "b", 1, "x");
    table_merge(t, 1u << FUNCTION | 1u << CACHE, BYTES);
    assert_int_equal(table_rows(t), 4);
    holds(t, 3, "a", 16, "z");
    table_merge(t, 1u << FUNCTION, BYTES);
    assert_int_equal(table_rows(t), 2);
    holds(t, 0, "a", 30, "z and others");
    holds(t, 1, "b", 2, "x");
}

static void others_are_said_once(void **state)
{
    struct table *t = begin(state);
    add(t, "a", 1, "x and others");
    add(t, "a", 1, "y");
    add(t, "b", 1, "x");
    add(t, "b", 1, "x and others");
    table_merge(t, 1u << FUNCTION, BYTES);
    assert_int_equal(table_rows(t), 2);
    holds(t, 0, "a", 2, "x and others");
    holds(t, 1, "b", 2, "x and others");
}

static void what_is_not_known_adds_nothing(void **state)
{
    struct table *t = begin(state);
    add(t, "a", 1, NULL);
    table_row(t);
    table_text(t, FUNCTION, "a");
    table_signed(t, GROWTH, -5);
    table_row(t);
    table_text(t, FUNCTION, "a");
    table_signed(t, GROWTH, 2);
    table_merge(t, 1u << FUNCTION, BYTES);
    assert_int_equal(table_rows(t), 1);
    holds(t, 0, "a", 1, NULL);
    assert_int_equal(table_at(t, 0, GROWTH)->negative_too, -3);
    assert_false(table_at(t, 0, PID)->known);
}

static void rows_without_the_text_are_alike_and_unlike_an_empty_one(void **state)
{
    struct table *t = begin(state);
    add(t, NULL, 1, NULL);
    add(t, "", 10, NULL);
    add(t, NULL, 2, NULL);
    add(t, "", 20, NULL);
    table_merge(t, 1u << FUNCTION, BYTES);
    assert_int_equal(table_rows(t), 2);
    assert_false(table_at(t, 0, FUNCTION)->known);
    assert_int_equal(table_at(t, 0, BYTES)->whole, 3);
    holds(t, 1, "", 30, NULL);
}

static void add_flags(struct table *t, uint64_t number, uint64_t longest, const char *flags)
{
    add(t, "a", 1, NULL);
    table_whole(t, NUMBER, number);
    table_whole(t, LONGEST, longest);
    table_text(t, FLAGS, flags);
    table_real(t, PID, 0.5);
}

static void some_columns_are_merged_otherwise(void **state)
{
    struct table *t = begin(state);
    add_flags(t, 7, 5, "A|BC");
    add_flags(t, 8, 9, "D");
    add_flags(t, 7, 3, "B|A|D");
    table_merge(t, 1u << FUNCTION | 1u << NUMBER, BYTES);
    assert_int_equal(table_rows(t), 2);
    assert_int_equal(table_at(t, 0, NUMBER)->whole, 7);
    assert_int_equal(table_at(t, 0, BYTES)->whole, 2);
    assert_int_equal(table_at(t, 0, LONGEST)->whole, 5);
    assert_string_equal(table_at(t, 0, FLAGS)->text, "A|BC|B|D");
    assert_false(table_at(t, 0, PID)->known); /* a share of several is not their sum */
    assert_true(table_at(t, 1, PID)->known);
    assert_int_equal(table_at(t, 1, LONGEST)->whole, 9);
}

static void a_text_of_the_largest_row_may_be_unknown(void **state)
{
    struct table *t = begin(state);
    const struct {
        uint64_t bytes;
        const char *aliases;
    } rows[] = {{2, "x y"}, {1, "z"}, {3, NULL}, {3, "w"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        add(t, i < 2 ? "a" : "b", rows[i].bytes, NULL);
        table_text(t, ALIASES, rows[i].aliases);
    }
    table_merge(t, 1u << FUNCTION, BYTES);
    assert_string_equal(table_at(t, 0, ALIASES)->text, "x y");
    assert_false(table_at(t, 1, ALIASES)->known);
    add(t, "a", 9, NULL);
    add(t, "b", 9, NULL);
    table_text(t, ALIASES, "v");
    table_merge(t, 1u << FUNCTION, BYTES);
    assert_false(table_at(t, 0, ALIASES)->known);
    assert_string_equal(table_at(t, 1, ALIASES)->text, "v");
}

static void histograms_are_added_slot_by_slot(void **state)
{
    struct table *t = begin(state);
    const uint64_t first[] = {1, 0, 3}, second[] = {0, 5, 7};
    add(t, "a", 1, NULL);
    add(t, "a", 1, NULL);
    table_histogram(t, SIZES, first, 3);
    add(t, "a", 1, NULL);
    table_histogram(t, SIZES, second, 3);
    add(t, "b", 1, NULL);
    table_merge(t, 1u << FUNCTION, BYTES);
    const uint64_t *slots = table_at(t, 0, SIZES)->slots;
    assert_int_equal(slots[0], 1);
    assert_int_equal(slots[1], 5);
    assert_int_equal(slots[2], 10);
    assert_int_equal(slots[3], 0);
    assert_false(table_at(t, 1, SIZES)->known);
}

static void estimates_are_added_with_their_variances(void **state)
{
    struct table *t = begin(state);
    const struct estimate_cell few = {2, 200, 2000, 20, 900}, many = {5, 700, 5000, 40, 900};
    struct estimate all = {.samples = 0};
    for (int i = 0; i < 3; i++) {
        struct estimate e = {.samples = 0};
        estimate_add_cell_bytes(&e, i == 1 ? &many : &few);
        add(t, i < 2 ? "a" : "b", 1, NULL);
        table_estimate(t, LIVE, &e);
        if (i < 2)
            estimate_merge(&all, &e);
    }
    table_merge(t, 1u << FUNCTION, LIVE);
    assert_int_equal(table_rows(t), 2);
    const struct estimate *merged = table_at(t, 0, LIVE)->estimate;
    const struct interval have = estimate_interval(merged), want = estimate_interval(&all);
    assert_int_equal(merged->samples, 7);
    assert_true(merged->value == 7000 && have.low == want.low && have.high == want.high);
    assert_true(table_at(t, 1, LIVE)->estimate->value == 2000);
}

static void a_table_without_rows_stays_so(void **state)
{
    struct table *t = begin(state);
    table_merge(t, 1u << FUNCTION, BYTES);
    assert_int_equal(table_rows(t), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(rows_of_a_text_stand_where_the_first_stood, end),
        cmocka_unit_test_teardown(the_largest_is_named_if_its_rows_are_merged_first, end),
        cmocka_unit_test_teardown(others_are_said_once, end),
        cmocka_unit_test_teardown(what_is_not_known_adds_nothing, end),
        cmocka_unit_test_teardown(rows_without_the_text_are_alike_and_unlike_an_empty_one, end),
        cmocka_unit_test_teardown(some_columns_are_merged_otherwise, end),
        cmocka_unit_test_teardown(a_text_of_the_largest_row_may_be_unknown, end),
        cmocka_unit_test_teardown(histograms_are_added_slot_by_slot, end),
        cmocka_unit_test_teardown(estimates_are_added_with_their_variances, end),
        cmocka_unit_test_teardown(a_table_without_rows_stays_so, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
