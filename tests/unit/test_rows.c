/* SPDX-License-Identifier: BSD-2-Clause */
/* src/store/rows, src/model/table: rows come back as they went, and only texts of our own form make a table of rows. */
#include "test_store.h"

#include "model/table/table_query.h"
#include "store/profile_load.h"
#include "store/recording.h"
#include "store/table_rows.h"

enum { NAME, BYTES, CHANGE, SHARE, FLAG, WHERE, LINES };

static const struct table_column columns[] = {
    [NAME] = {"name", TABLE_PLAIN, TABLE_TEXT},      [BYTES] = {"held", TABLE_BYTES, TABLE_WHOLE},
    [CHANGE] = {"order", TABLE_COUNT, TABLE_SIGNED}, [SHARE] = {"share", TABLE_PERCENT, TABLE_REAL},
    [FLAG] = {"flag", TABLE_PLAIN, TABLE_FLAG},      [WHERE] = {"address", TABLE_PLAIN, TABLE_ADDRESS},
    [LINES] = {"stack", TABLE_PLAIN, TABLE_LINES},
};

static struct table *make_table(void)
{
    return table_new("rows", 1, columns, sizeof(columns) / sizeof(*columns));
}

/* Row i: some values are not known, none is like that of its neighbour. */
static void add(struct table *t, uint64_t i)
{
    char text[64];
    table_row(t);
    snprintf(text, sizeof(text), "name '%" PRIu64 "\"", i);
    table_text(t, NAME, i % 5 ? text : NULL);
    table_whole(t, BYTES, i * 977 % 1009);
    if (i % 3)
        table_signed(t, CHANGE, -(int64_t)i);
    table_real(t, SHARE, (double)i / 7);
    table_flag(t, FLAG, i & 1);
    table_whole(t, WHERE, 0xffffffff81000000u + i);
    table_text(t, LINES, "leaf\nroot\n");
}

static char *shown(const struct table *t)
{
    struct buf b = BUF_INIT;
    for (uint32_t row = 0; row < table_rows(t); row++)
        for (uint32_t i = 0; i < t->n_columns; i++) {
            const struct table_value *v = table_at(t, row, i);
            if (!v->known)
                buf_addstr(&b, "-|");
            else if (t->columns[i].type == TABLE_TEXT || t->columns[i].type == TABLE_LINES)
                buf_printf(&b, "%s|", v->text);
            else
                buf_printf(&b, "%.17g|", table_number(t, row, i));
        }
    return buf_detach(&b);
}

struct times {
    struct table *t;
    uint32_t rows[8];
    uint64_t time_ns[8];
    unsigned n;
};

static void note_time(void *arg, uint64_t time_ns)
{
    struct times *times = arg;
    assert_true(times->n < 8);
    times->rows[times->n] = table_rows(times->t);
    times->time_ns[times->n++] = time_ns;
}

static void rows_come_back_as_they_went(void **state)
{
    (void)state;
    struct recording *r;
    struct table *t = make_table(), *back = make_table();
    assert_int_equal(recording_create(&r, file, false, &err), 0);
    for (uint64_t i = 0; i < 300; i++)
        add(t, i);
    assert_int_equal(recording_put_rows(r, "sys_test", t, 1000, &err), 0);
    char *wanted = shown(t);
    table_clear(t);
    add(t, 300);
    assert_int_equal(recording_put_rows(r, "sys_test", t, 2000, &err), 0);
    assert_int_equal(recording_close(r, &err), 0);

    struct times times = {.t = back};
    assert_int_equal(recording_load_rows(file, "sys_test", back, note_time, &times, &err), 0);
    assert_int_equal(times.n, 2);
    assert_int_equal(times.rows[0], 300);
    assert_int_equal(times.rows[1], 301);
    assert_int_equal(times.time_ns[0], 1000);
    assert_int_equal(times.time_ns[1], 2000);
    table_cut(back, 300);
    char *got = shown(back);
    assert_string_equal(got, wanted);
    assert_int_equal(recording_load_rows(file, "sys_other", back, note_time, &times, &err), -ENODATA);
    free(got);
    free(wanted);
    table_free(t);
    table_free(back);
}

static void what_was_hidden_is_not_recorded_and_stays_hidden(void **state)
{
    (void)state;
    struct recording *r;
    struct table *t = make_table(), *back = make_table();
    struct times times = {.t = back};
    t->hidden = 1ull << BYTES | 1ull << LINES;
    add(t, 1);
    assert_int_equal(recording_create(&r, file, false, &err), 0);
    assert_int_equal(recording_put_rows(r, "sys_test", t, 1000, &err), 0);
    assert_int_equal(recording_close(r, &err), 0);
    assert_int_equal(recording_load_rows(file, "sys_test", back, note_time, &times, &err), 0);
    assert_int_equal(back->hidden, t->hidden);
    assert_false(table_at(back, 0, BYTES)->known);
    assert_string_equal(table_at(back, 0, NAME)->text, table_at(t, 0, NAME)->text);
    assert_int_equal(table_at(back, 0, CHANGE)->negative_too, table_at(t, 0, CHANGE)->negative_too);
    assert_int_equal(table_at(back, 0, WHERE)->whole, table_at(t, 0, WHERE)->whole);
    table_free(t);
    table_free(back);
}

static void only_our_own_form_is_ours(void **state)
{
    (void)state;
    static const struct {
        const char *name, *sql;
        bool ours;
    } cases[] = {
        {"sys_a", "CREATE TABLE sys_a(\n  taken_ns INTEGER, \"b\" TEXT, \"c_1\" REAL\n)", true},
        {"sys_a", "CREATE TABLE sys_a(\n  taken_ns INTEGER\n)", true},
        {"sys_a", "CREATE TABLE sys_b(\n  taken_ns INTEGER, \"b\" TEXT\n)", false},
        {"kmem", "CREATE TABLE kmem(\n  taken_ns INTEGER, \"b\" TEXT\n)", false},
        {"sys_a", "CREATE TABLE sys_a(\n  taken_ns INTEGER, \"b\" TEXT DEFAULT (evil())\n)", false},
        {"sys_a", "CREATE TABLE sys_a(\n  taken_ns INTEGER, \"b\" TEXT AS (evil())\n)", false},
        {"sys_a", "CREATE TABLE sys_a(\n  taken_ns INTEGER, \"b\" BLOB\n)", false},
        {"sys_a", "CREATE TABLE sys_a(\n  taken_ns INTEGER, \"B\" TEXT\n)", false},
        {"sys_a", "CREATE TABLE sys_a(\n  taken_ns INTEGER, \"b\" TEXT\n) STRICT", false},
        {"sys_a", "CREATE TABLE sys_a(\n  taken_ns INTEGER, \"b\" TEXT", false},
        {"sys_a", "CREATE TABLE sys_a(\n  taken_ns INTEGER, TEXT\n)", false},
        {"sys_a", "CREATE TABLE sys_a(\n  taken_ns INTEGER, b TEXT\n)", false},
        {"sys_a", "CREATE TABLE sys_a(\n  taken_ns INTEGER, \"order\" INTEGER\n)", true},
        {"sys_a", "CREATE TABLE sys_a(\n  taken_ns INTEGER, \"b TEXT\n)", false},
        {"sys_a;x", "CREATE TABLE sys_a;x(\n  taken_ns INTEGER\n)", false},
        {"", "", false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        if (rows_is_ours(cases[i].name, cases[i].sql) != cases[i].ours)
            fail_msg("%s", cases[i].sql);
}

/* In each order, what is not known comes last, and those that are equal stay as they were. */
static void rows_are_sorted_both_ways(void **state)
{
    (void)state;
    struct table *t = make_table(), *more = make_table();
    for (uint64_t i = 0; i < 300; i++)
        add(t, i);
    for (uint64_t i = 300; i < 500; i++)
        add(more, i);
    table_move_rows(t, more);
    assert_int_equal(table_rows(t), 500);
    assert_int_equal(table_rows(more), 0);
    for (enum table_order order = TABLE_USUAL; order <= TABLE_LEAST_FIRST; order++) {
        table_sort(t, CHANGE, order);
        for (uint32_t row = 1; row < 500; row++) {
            double before = table_number(t, row - 1, CHANGE), here = table_number(t, row, CHANGE);
            assert_int_equal(table_at(t, row, CHANGE)->known, row < 333);
            if (row < 333)
                assert_true(order == TABLE_LEAST_FIRST ? before < here : before > here);
        }
        table_sort(t, WHERE, TABLE_LEAST_FIRST);
        table_sort(t, FLAG, order);
        for (uint32_t row = 1; row < 500; row++)
            assert_true(row == 250 || table_at(t, row - 1, WHERE)->whole < table_at(t, row, WHERE)->whole);
        assert_int_equal(table_at(t, 0, FLAG)->flag, order != TABLE_LEAST_FIRST);
        table_sort(t, NAME, order);
        assert_true(!table_at(t, 400, NAME)->known);
        for (uint32_t row = 1; row < 400; row++) {
            int c = strcmp(table_at(t, row - 1, NAME)->text, table_at(t, row, NAME)->text);
            assert_true(order == TABLE_MOST_FIRST ? c > 0 : c < 0);
        }
    }
    table_free(more);
    table_free(t);
}

static void rows_are_sorted_cut_and_kept(void **state)
{
    (void)state;
    struct table *t = make_table();
    struct table_query q;
    for (uint64_t i = 0; i < 500; i++)
        add(t, i);
    table_sort(t, BYTES, TABLE_USUAL);
    for (uint32_t row = 1; row < table_rows(t); row++)
        assert_true(table_number(t, row - 1, BYTES) >= table_number(t, row, BYTES));
    table_sort(t, NAME, TABLE_USUAL);
    assert_true(table_at(t, 0, NAME)->known && !table_at(t, 499, NAME)->known &&
                !table_at(t, 400, NAME)->known);
    assert_int_equal(table_query_init(&q, "held>=512 !name:*3* stack:root", columns, t->n_columns, &err), 0);
    table_query_apply(&q, t);
    unsigned expected = 0;
    for (uint64_t i = 0; i < 500; i++) {
        char text[32];
        snprintf(text, sizeof(text), "%" PRIu64, i);
        expected += i * 977 % 1009 >= 512 && !(i % 5 && strchr(text, '3'));
    }
    assert_int_equal(table_rows(t), expected);
    table_query_release(&q);
    table_cut(t, 3);
    assert_int_equal(table_rows(t), 3);
    assert_int_equal(table_query_init(&q, "nothing>1", columns, t->n_columns, &err), -EINVAL);
    table_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(rows_come_back_as_they_went, empty_folder),
        cmocka_unit_test_teardown(what_was_hidden_is_not_recorded_and_stays_hidden, empty_folder),
        cmocka_unit_test(only_our_own_form_is_ours),
        cmocka_unit_test(rows_are_sorted_both_ways),
        cmocka_unit_test(rows_are_sorted_cut_and_kept),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
