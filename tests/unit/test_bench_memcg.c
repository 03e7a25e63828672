/* SPDX-License-Identifier: BSD-2-Clause */
/* src/bench/memcg, without cgroups: the interval of a median, the switch of memory allocation profiling, the table. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "bench/memcg/bench_median.h"
#include "bench/memcg/mem_profiling.h"
#include "bench/memcg/memcg_table.h"

/* ---- medians ---- */

static double uniform(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(*seed >> 11) / (double)(UINT64_C(1) << 53);
}

static void the_ranks_are_those_of_the_binomial_distribution(void **state)
{
    /* n, and the largest k with P(X < k) <= 0.025, where X has the binomial distribution of n and 1/2 */
    static const size_t ranks[][2] = {{6, 1}, {8, 1}, {9, 2}, {11, 2}, {12, 3}, {20, 6}, {30, 10}, {100, 40}};
    double values[100];
    (void)state;
    for (size_t i = 0; i < sizeof(ranks) / sizeof(*ranks); i++) {
        const size_t n = ranks[i][0], k = ranks[i][1];
        for (size_t v = 0; v < n; v++)
            values[v] = (double)(n - v); /* n ... 1: unsorted */
        const struct bench_median m = bench_median_of(values, n);
        assert_true(m.value == (double)(n + 1) / 2);
        assert_true(m.low == (double)k);
        assert_true(m.high == (double)(n + 1 - k));
    }
}

static void few_values_have_no_interval(void **state)
{
    double values[] = {3, 1, 2, 5, 4};
    (void)state;
    assert_true(isnan(bench_median_of(values, 0).value));
    assert_true(bench_median_of(values, 1).value == 3);
    const struct bench_median m = bench_median_of(values, 5);
    assert_true(m.value == 3 && isinf(m.low) && m.low < 0 && isinf(m.high) && m.high > 0);
}

/* Of 4,000 intervals from an exponential distribution, whose median is ln 2, 95 % or more contain it: 3 standard
 * deviations of the count of a coverage of 95 % are 41. */
static void an_interval_contains_the_true_median_as_often_as_it_says(void **state)
{
    uint64_t seed = 1;
    int hits = 0;
    (void)state;
    for (int i = 0; i < 4000; i++) {
        double values[25];
        for (int v = 0; v < 25; v++)
            values[v] = -log(1 - uniform(&seed));
        const struct bench_median m = bench_median_of(values, 25);
        hits += m.low <= M_LN2 && M_LN2 <= m.high;
    }
    assert_in_range(hits, 3800 - 41, 4000);
}

/* ---- the switch ---- */

static void write_file(const char *folder, const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static char first_byte(const char *path)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    const int byte = fgetc(file);
    fclose(file);
    return (char)byte;
}

static void the_switch_is_restored(void **state)
{
    char proc[] = "/tmp/allium-test-XXXXXX", path[512];
    struct mem_profiling p;
    struct error e = {""};
    (void)state;
    assert_non_null(mkdtemp(proc));
    assert_int_equal(mem_profiling_open(&p, proc, &e), -EOPNOTSUPP); /* no allocinfo */
    assert_non_null(strstr(e.text, "CONFIG_MEM_ALLOC_PROFILING"));
    assert_string_equal(p.path, "");
    mem_profiling_restore(&p); /* nothing to restore */

    snprintf(path, sizeof(path), "%s/sys", proc);
    mkdir(path, 0700);
    snprintf(path, sizeof(path), "%s/sys/vm", proc);
    mkdir(path, 0700);
    write_file(proc, "allocinfo", "");
    write_file(proc, "sys/vm/mem_profiling", "never\n");
    assert_int_equal(mem_profiling_open(&p, proc, &e), -EOPNOTSUPP);

    for (char before = '0'; before <= '1'; before++) {
        write_file(proc, "sys/vm/mem_profiling", before == '0' ? "0\n" : "1\n");
        assert_int_equal(mem_profiling_open(&p, proc, &e), 0);
        assert_int_equal(mem_profiling_set(&p, true), 0);
        assert_int_equal(first_byte(p.path), '1');
        assert_int_equal(mem_profiling_set(&p, false), 0);
        assert_int_equal(first_byte(p.path), '0');
        mem_profiling_set(&p, before == '0');
        mem_profiling_restore(&p);
        assert_int_equal(first_byte(p.path), before);
    }
    unlink(p.path);
    rmdir(path);
    snprintf(path, sizeof(path), "%s/sys", proc);
    rmdir(path);
    snprintf(path, sizeof(path), "%s/allocinfo", proc);
    unlink(path);
    assert_int_equal(rmdir(proc), 0);
}

/* ---- the table ---- */

static void fill(struct memcg_cost *cost)
{
    for (size_t i = 0; i < MEMCG_COST_ROWS; i++)
        cost->rows[i] =
            (struct memcg_cost_row){.kind = &memcg_work_kinds[i], .held = 10, .charged_bytes = 40960};
}

static void what_was_not_measured_is_unknown_and_said(void **state)
{
    struct memcg_cost cost = {.hierarchy = CGROUP_V2, .profiling = {"no profiling"}};
    struct buf notes = BUF_INIT;
    (void)state;
    assert_int_equal(memcg_work_kinds_n, MEMCG_COST_ROWS);
    fill(&cost);
    error_set(&cost.rows[1].unavailable, 1, "no time");
    cost.rows[0].charged_bytes = 0;     /* the kernel's memory is not charged: nokmem */
    cost.rows[3].charged_bytes = 20480; /* half of the pages */
    struct table *t = memcg_table_new(&cost);
    memcg_table_notes(&cost, &notes);
    assert_int_equal(table_rows(t), MEMCG_COST_ROWS);
    assert_false(table_at(t, 0, MEMCG_RATIO)->known);
    assert_string_equal(table_at(t, 1, MEMCG_UNAVAILABLE)->text, "no time");
    assert_false(table_at(t, 0, MEMCG_UNAVAILABLE)->known);
    assert_true(table_number(t, 2, MEMCG_CHARGED_BYTES) == 4096);
    assert_non_null(strstr(buf_str(&notes), "cgroup v2"));
    assert_non_null(strstr(buf_str(&notes), "pipe: the cgroup was charged nothing; the kernel may"));
    assert_non_null(strstr(buf_str(&notes), "touch: the cgroup was charged 2048 B for each page of 4096 B"));
    assert_null(strstr(buf_str(&notes), "cache: the cgroup"));
    assert_non_null(strstr(buf_str(&notes), "not measured: no profiling."));
    table_free(t);
    buf_release(&notes);
}

static void profiling_has_columns_where_it_was_measured(void **state)
{
    struct memcg_cost cost = {.hierarchy = CGROUP_V1_MEMORY};
    struct buf notes = BUF_INIT;
    (void)state;
    fill(&cost);
    cost.rows[0].turns = 8;
    cost.rows[0].ns[MEMCG_COST_PROFILED] = (struct bench_median){136, 130, 140};
    cost.rows[0].ratio[MEMCG_COST_PROFILED] = (struct bench_median){1.36, 1.3, INFINITY};
    struct table *t = memcg_table_new(&cost);
    memcg_table_notes(&cost, &notes);
    assert_true(table_number(t, 0, MEMCG_PROFILED_NS) == 136);
    assert_true(table_number(t, 0, MEMCG_PROFILED_RATIO) == 1.36);
    assert_false(table_at(t, 0, MEMCG_PROFILED_HIGH)->known);
    assert_null(strstr(buf_str(&notes), "not measured"));
    table_free(t);
    buf_release(&notes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_ranks_are_those_of_the_binomial_distribution),
        cmocka_unit_test(few_values_have_no_interval),
        cmocka_unit_test(an_interval_contains_the_true_median_as_often_as_it_says),
        cmocka_unit_test(the_switch_is_restored),
        cmocka_unit_test(what_was_not_measured_is_unknown_and_said),
        cmocka_unit_test(profiling_has_columns_where_it_was_measured),
    };
    return cmocka_run_group_tests_name("bench_memcg", tests, NULL, NULL);
}
