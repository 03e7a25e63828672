/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * src/model/accounts, accounts_query, accounts_table: exact accounts of places.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/accounts/accounts_table.h"

struct fixture {
    struct alloc_texts texts;
    struct accounts a, b;
};

static void release(struct fixture *f)
{
    accounts_release(&f->a);
    accounts_release(&f->b);
    alloc_texts_release(&f->texts);
}

static uint32_t text(struct fixture *f, const char *t)
{
    return t ? alloc_texts_put(&f->texts, t, strlen(t)) : ALLOC_NO_TEXT;
}

/* A copy of a place that made `calls` objects of 10 bytes, of which `gone` went. */
static struct account_row *put(struct fixture *f, struct accounts *a, const char *file, uint32_t line,
                               const char *function, uint64_t calls, uint64_t gone)
{
    struct account_row *r = vec_push(&a->rows);
    r->key = (struct account_key){.file = text(f, file),
                                  .line = line,
                                  .function = text(f, function),
                                  .module = text(f, "/bin/x"),
                                  .comm = text(f, "x"),
                                  .pid = 7};
    r->copies = 1;
    struct account_sum *s = &r->of[ACCOUNT_AFTER];
    s->of[ACCOUNT_ALLOCATED_CALLS] = calls;
    s->of[ACCOUNT_ALLOCATED_BYTES] = calls * 10;
    s->of[ACCOUNT_RELEASED_CALLS] = gone;
    s->of[ACCOUNT_RELEASED_BYTES] = gone * 10;
    s->places = 1;
    return r;
}

static void assert_row(struct fixture *f, const struct account_row *r, const char *file, const char *function,
                       uint64_t calls, int64_t objects)
{
    const char *have = alloc_texts_get(&f->texts, r->key.file);
    assert_string_equal(have ? have : "-", file);
    have = alloc_texts_get(&f->texts, r->key.function);
    assert_string_equal(have ? have : "-", function);
    assert_int_equal(r->of[ACCOUNT_AFTER].of[ACCOUNT_ALLOCATED_CALLS], calls);
    assert_int_equal(account_live_objects(&r->of[ACCOUNT_AFTER]), objects);
    assert_int_equal(account_live_bytes(&r->of[ACCOUNT_AFTER]), objects * 10);
}

static void copies_are_one_row(void **state)
{
    (void)state;
    struct fixture f = {.a = {.rows = {0}}};
    put(&f, &f.a, "a.h", 3, "twin<long>", 5, 1);
    put(&f, &f.a, "a.h", 3, "twin<int>", 2, 2)->of[ACCOUNT_AFTER].inexact = 1;
    put(&f, &f.a, "a.h", 4, "twin<int>", 1, 0);
    put(&f, &f.a, NULL, 0, "one", 1, 0);
    put(&f, &f.a, NULL, 0, "two", 1, 0);
    put(&f, &f.a, NULL, 0, "two", 3, 0);
    accounts_merge(&f.a, &f.texts);
    assert_int_equal(f.a.rows.len, 4);
    assert_row(&f, &f.a.rows.at[0], "-", "one", 1, 1);
    assert_row(&f, &f.a.rows.at[1], "a.h", "twin<int>", 7, 4);
    assert_row(&f, &f.a.rows.at[2], "a.h", "twin<int>", 1, 1);
    assert_row(&f, &f.a.rows.at[3], "-", "two", 4, 4);
    const struct account_row *both = &f.a.rows.at[1];
    assert_int_equal(both->copies, 2);
    assert_int_equal(both->of[ACCOUNT_AFTER].places, 1);
    assert_int_equal(both->of[ACCOUNT_AFTER].inexact, 1);
    accounts_merge(&f.a, &f.texts); /* a second time changes nothing */
    assert_int_equal(f.a.rows.len, 4);
    assert_row(&f, &f.a.rows.at[1], "a.h", "twin<int>", 7, 4);
    release(&f);
}

static void two_readings_are_joined(void **state)
{
    (void)state;
    struct fixture f = {.a = {.rows = {0}}};
    struct account_rows rows = {0};
    put(&f, &f.a, "a.c", 1, "f", 5, 1);
    put(&f, &f.a, "gone.c", 1, "g", 5, 5);
    put(&f, &f.a, "same.c", 1, "h", 2, 0);
    put(&f, &f.b, "a.c", 1, "f", 9, 8)->key.pid = 8; /* another run of it */
    put(&f, &f.b, "new.c", 1, "n", 1, 0);
    put(&f, &f.b, "same.c", 1, "h", 2, 0);
    account_rows_join(&rows, &f.a, &f.b, 0);
    assert_int_equal(rows.len, 4);
    assert_row(&f, &rows.at[0], "a.c", "f", 9, 1);
    assert_int_equal(rows.at[0].of[ACCOUNT_BEFORE].of[ACCOUNT_ALLOCATED_CALLS], 5);
    assert_row(&f, &rows.at[1], "gone.c", "g", 0, 0);
    account_rows_keep_changed(&rows);
    assert_int_equal(rows.len, 3);
    vec_release(&rows);
    account_rows_join(&rows, &f.a, &f.b, ACCOUNT_PART_PROCESS);
    assert_int_equal(rows.len, 5);
    vec_release(&rows);
    release(&f);
}

static void groups_add_up(void **state)
{
    (void)state;
    static const struct {
        enum account_group group;
        size_t rows;
    } wanted[] = {{ACCOUNT_BY_PLACE, 5},     {ACCOUNT_BY_FUNCTION, 3}, {ACCOUNT_BY_FILE, 4},
                  {ACCOUNT_BY_DIRECTORY, 3}, {ACCOUNT_BY_MODULE, 1},   {ACCOUNT_BY_CLASS, 1},
                  {ACCOUNT_BY_PROCESS, 2}};
    struct fixture f = {.a = {.rows = {0}}};
    put(&f, &f.a, "src/a.c", 1, "f", 1, 0);
    put(&f, &f.a, "src/a.c", 2, "f", 10, 0);
    put(&f, &f.a, "src/b.c", 1, "g", 100, 50)->of[ACCOUNT_AFTER].inexact = 1;
    put(&f, &f.a, "c.c", 1, "f", 1000, 0);
    put(&f, &f.a, NULL, 0, "h", 10000, 10000);
    put(&f, &f.a, "src/a.c", 1, "f", 100000, 0)->key.pid = 8;
    for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
        struct account_rows places = {0}, rows = {0};
        account_rows_join(&places, NULL, &f.a, ACCOUNT_PART_PROCESS);
        account_rows_group(&rows, &places, wanted[i].group, &f.texts);
        assert_int_equal(rows.len, wanted[i].rows);
        struct account_sum total = account_rows_total(&rows, ACCOUNT_AFTER);
        assert_int_equal(total.of[ACCOUNT_ALLOCATED_CALLS], 111111);
        assert_int_equal(total.of[ACCOUNT_RELEASED_BYTES], 100500);
        assert_int_equal(total.inexact, 1);
        if (wanted[i].group == ACCOUNT_BY_DIRECTORY)
            assert_row(&f, &rows.at[0], "src", "-", 100111, 100061);
        vec_release(&rows);
        vec_release(&places);
    }
    release(&f);
}

static void queries_hold_for_places(void **state)
{
    (void)state;
    static const struct {
        const char *query;
        size_t rows;
    } wanted[] = {{"", 3},
                  {"func:f", 1},
                  {"file:a.c", 1},
                  {"dir:src", 2},
                  {"dir:.", 1},
                  {"line:2", 1},
                  {"module:x", 3},
                  {"class:*", 0},
                  {"!class:*", 3},
                  {"live>40", 1},
                  {"live<0", 1},
                  {"objects:1..4", 1},
                  {"allocated>=100 freed:10", 1},
                  {"count=10", 2},
                  {"frees>10", 1},
                  {"failed>0", 0},
                  {"average:10", 3},
                  {"accurate:no", 1},
                  {"comm:x pid:7", 3},
                  {"pid:8", 0}};
    struct fixture f = {.a = {.rows = {0}}};
    put(&f, &f.a, "src/a.c", 1, "f", 10, 1);
    put(&f, &f.a, "src/b.c", 2, "g", 5, 1)->of[ACCOUNT_AFTER].inexact = 1;
    put(&f, &f.a, "c.c", 3, "h", 10, 11);
    for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
        struct account_rows rows = {0};
        struct query *q;
        struct error e = {""};
        assert_int_equal(account_query_parse(&q, wanted[i].query, &e), 0);
        assert_int_equal(account_query_needs_processes(q), strstr(wanted[i].query, "pid") != NULL);
        account_rows_join(&rows, NULL, &f.a, ACCOUNT_PART_PROCESS);
        account_rows_keep(&rows, q, &f.texts);
        if (rows.len != wanted[i].rows)
            fail_msg("%s: %zu rows", wanted[i].query, rows.len);
        vec_release(&rows);
        query_free(q);
    }
    release(&f);
}

static void rates_take_the_same_process(void **state)
{
    (void)state;
    struct fixture f = {.a = {.rows = {0}}};
    *vec_push(&f.a.processes) = (struct account_process){.image_id = 1, .taken_ns = 1000000000};
    *vec_push(&f.b.processes) = (struct account_process){.image_id = 2, .taken_ns = 9000000000};
    assert_true(accounts_seconds(&f.a, &f.b) == 0);
    *vec_push(&f.b.processes) = (struct account_process){.image_id = 1, .taken_ns = 3500000000};
    assert_true(accounts_seconds(&f.a, &f.b) == 2.5);
    assert_true(accounts_seconds(&f.b, &f.a) == 0);
    release(&f);
}

static double number(const struct table *t, uint32_t row, const char *column)
{
    for (uint32_t i = 0; i < t->n_columns; i++)
        if (!strcmp(t->columns[i].name, column))
            return table_hides(t, i) ? -1e9 : table_number(t, row, i);
    fail_msg("no column %s", column);
    return 0;
}

static void tables_have_what_was_asked_for(void **state)
{
    (void)state;
    struct fixture f = {.a = {.rows = {0}}};
    struct account_rows rows = {0};
    put(&f, &f.a, "a.c", 1, "f", 100, 50);
    put(&f, &f.b, "a.c", 1, "f", 150, 110);
    put(&f, &f.b, "b.c", 1, "g", 40, 0);
    account_rows_join(&rows, &f.a, &f.b, 0);
    struct account_shape shape = {.schema = "tags", .sort = ACCOUNT_SORT_ALLOCATIONS};
    struct table *t = accounts_table_new(&rows, &f.texts, &shape);
    assert_true(number(t, 0, "allocations") == 150 && number(t, 1, "live") == 400);
    assert_true(number(t, 0, "live_change") == -1e9);
    table_free(t);
    shape = (struct account_shape){.schema = "tags", .view = ACCOUNT_CHANGE, .top = 1};
    t = accounts_table_new(&rows, &f.texts, &shape);
    assert_int_equal(table_rows(t), 1);
    assert_true(number(t, 0, "live_change") == 400 && number(t, 0, "allocated_per_s") == -1e9);
    table_free(t);
    shape = (struct account_shape){
        .schema = "tags", .view = ACCOUNT_RATE, .sort = ACCOUNT_SORT_ALLOCATED, .seconds = 2.5};
    t = accounts_table_new(&rows, &f.texts, &shape);
    assert_true(number(t, 0, "allocated_per_s") == 200 && number(t, 1, "allocations_per_s") == 16);
    assert_true(number(t, 0, "live_change") == -100);
    accounts_table_for_screen(t, &shape);
    assert_true(number(t, 0, "accurate") == -1e9);
    table_free(t);
    vec_release(&rows);
    release(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        {"copies of a place are one row", copies_are_one_row, NULL, NULL, NULL},
        {"two readings are joined by place", two_readings_are_joined, NULL, NULL, NULL},
        {"groups add up to the whole", groups_add_up, NULL, NULL, NULL},
        {"queries hold for places", queries_hold_for_places, NULL, NULL, NULL},
        {"seconds lie between two readings of one process", rates_take_the_same_process, NULL, NULL, NULL},
        {"tables have what was asked for", tables_have_what_was_asked_for, NULL, NULL, NULL},
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
