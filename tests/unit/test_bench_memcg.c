/* SPDX-License-Identifier: BSD-2-Clause */
/* src/bench/memcg, without cgroups: the switch of memory allocation profiling, the table. */
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

#include "bench/memcg/mem_profiling.h"
#include "bench/memcg/memcg_table.h"

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
    cost.rows[0].ns[MEMCG_COST_PROFILED] = (struct memcg_median){136, {130, 140}};
    cost.rows[0].ratio[MEMCG_COST_PROFILED] = (struct memcg_median){1.36, {1.3, INFINITY}};
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
        cmocka_unit_test(the_switch_is_restored),
        cmocka_unit_test(what_was_not_measured_is_unknown_and_said),
        cmocka_unit_test(profiling_has_columns_where_it_was_measured),
    };
    return cmocka_run_group_tests_name("bench_memcg", tests, NULL, NULL);
}
