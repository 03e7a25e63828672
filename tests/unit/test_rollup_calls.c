/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * src/model/rollup, trees: who called a function, and what it called.
 */
#include "test_view_truth.h"

static struct rollup *tree_of(const struct profile *p, enum rollup_group group, const char *focus)
{
    return rollup_new(p, &(struct rollup_options){.group = group, .inclusive = true, .focus = focus});
}

/* Each row comes after the one that it is below and is no larger; ends add up; a byte of the total is in one top
 * row. */
static void check_tree(const struct rollup *r)
{
    double ends = 0, tops = 0;
    for (uint32_t i = 0; i < r->rows.len; i++) {
        const struct rollup_row *row = &r->rows.at[i];
        ends += row->self.of[ROLLUP_ALLOCATED].bytes.value;
        if (row->parent == PROFILE_NONE) {
            tops += row->inclusive.of[ROLLUP_ALLOCATED].bytes.value;
            assert_int_equal(row->depth, 0);
            continue;
        }
        const struct rollup_row *above = &r->rows.at[row->parent];
        assert_true(row->parent < i);
        assert_int_equal(row->depth, above->depth + 1);
        assert_true(live_of(&row->inclusive) <= live_of(&above->inclusive) + 1e-6);
    }
    assert_near(ends, r->total.of[ROLLUP_ALLOCATED].bytes.value);
    assert_near(tops, r->total.of[ROLLUP_ALLOCATED].bytes.value);
}

static void trees_begin_with_their_function(void **state)
{
    (void)state;
    struct profile *p = shop(1);
    struct rollup *functions = roll(p, ROLLUP_BY_FUNCTION, ROLLUP_SORT_LIVE);
    vec_each (const struct rollup_row, row, &functions->rows)
        for (int group = ROLLUP_BY_CALLERS; group <= ROLLUP_BY_CALLEES; group++) {
            struct rollup *r = tree_of(p, (enum rollup_group)group, row->name);
            check_tree(r);
            assert_string_equal(r->rows.at[0].name, row->name);
            assert_near(live_of(&r->rows.at[0].inclusive), live_of(&row->inclusive));
            assert_near(r->total.of[ROLLUP_ALLOCATED].count.value,
                        row->inclusive.of[ROLLUP_ALLOCATED].count.value);
            rollup_free(r);
        }
    rollup_free(functions);
    profile_free(p);
}

static void trees_count_recursion_once(void **state)
{
    (void)state;
    struct profile *p = shop(1);
    struct rollup *r = tree_of(p, ROLLUP_BY_CALLERS, "walk");
    vec_each (const struct rollup_row, row, &r->rows)
        assert_int_equal(!strcmp(row->name, "walk"), row->depth == 0);
    assert_near(r->rows.at[0].inclusive.of[ROLLUP_ALLOCATED].bytes.value, (12 + 2) * 48);
    rollup_free(r);
    r = tree_of(p, ROLLUP_BY_CALLEES, "walk");
    vec_each (const struct rollup_row, row, &r->rows)
        assert_int_equal(!strcmp(row->name, "walk"), row->depth == 0);
    assert_near(r->rows.at[0].inclusive.of[ROLLUP_ALLOCATED].bytes.value, (12 + 2) * 48);
    rollup_free(r);
    r = tree_of(p, ROLLUP_BY_CALLERS, "*"); /* the outermost of all, and each byte once */
    check_tree(r);
    vec_each (const struct rollup_row, row, &r->rows)
        assert_int_equal(row->depth, 0);
    rollup_free(r);
    r = tree_of(p, ROLLUP_BY_CALLEES, "nobody");
    assert_int_equal(r->rows.len, 0);
    rollup_free(r);
    profile_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST("a tree of calls begins with its function's row, and adds up", trees_begin_with_their_function),
        TEST("a tree of calls counts recursion once", trees_count_recursion_once),
    };
    return cmocka_run_group_tests_name("rollup_calls", tests, NULL, NULL);
}
