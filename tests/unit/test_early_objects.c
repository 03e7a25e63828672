/* SPDX-License-Identifier: BSD-2-Clause */
/* Objects that are older than a trace: bounds from what caches hold and what the trace has live. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/kernel/early_objects.h"

static void add_cache(struct early_objects *o, const char *name, uint64_t stride, uint64_t active,
                      uint64_t slots, uint64_t cpu_slots)
{
    early_objects_add_cache(o, &(struct early_cache){.name = name,
                                                     .stride_bytes = stride,
                                                     .active = active,
                                                     .slots = slots,
                                                     .cpu_slots = cpu_slots,
                                                     .is_kmalloc = !strncmp(name, "kmalloc", 7)});
}

static void add_live(struct early_objects *o, const char *cache, uint64_t stride, uint64_t objects)
{
    early_objects_add_live(
        o, &(struct early_live){
               .cache = cache, .is_kmalloc = *cache == '(', .stride_bytes = stride, .objects = objects});
}

static struct early_row only_row(const struct early_objects *o)
{
    size_t n;
    const struct early_row *rows = early_objects_rows(o, &n);
    assert_int_equal(n, 1);
    return rows[0];
}

static void check_row(const struct early_row *r, const char *caches, uint64_t low, uint64_t high)
{
    assert_string_equal(r->caches, caches);
    assert_int_equal(r->low, low);
    assert_int_equal(r->high, high);
}

static void slabs_of_cpus_lower_one_bound_and_free_slots_raise_the_other(void **state)
{
    (void)state;
    struct early_objects *o = early_objects_new();
    add_cache(o, "dentry", 192, 1000, 1050, 42);
    add_live(o, "dentry", 192, 800);
    early_objects_compute(o, false);
    const struct early_row r = only_row(o);
    check_row(&r, "dentry", 1000 - 42 - 800, 1050 - 800);
    const struct early_sums s = early_objects_sums(o);
    assert_int_equal(s.low_bytes, 158 * 192);
    assert_int_equal(s.high_bytes, 250 * 192);
    assert_int_equal(s.active_bytes, 1000 * 192);
    early_objects_free(o);
}

static void bounds_are_never_below_nothing_nor_above_what_is_active(void **state)
{
    (void)state;
    struct early_objects *o = early_objects_new();
    add_cache(o, "dentry", 192, 100, 200, 42);
    add_live(o, "dentry", 192, 80);
    early_objects_compute(o, false);
    struct early_row r = only_row(o);
    check_row(&r, "dentry", 0, 100);
    early_objects_free(o);
    /* Slabs with objects that were freed without an event have gone: the trace has more than there is room for. */
    o = early_objects_new();
    add_cache(o, "maple_node", 256, 50, 64, 0);
    add_live(o, "maple_node", 256, 70);
    early_objects_compute(o, false);
    r = only_row(o);
    check_row(&r, "maple_node", 0, 50);
    early_objects_free(o);
}

static void without_the_slabs_of_cpus_or_after_a_loss_there_is_no_lower_bound(void **state)
{
    (void)state;
    for (int lost = 0; lost < 2; lost++) {
        struct early_objects *o = early_objects_new();
        add_cache(o, "dentry", 192, 1000, 1050, lost ? 0 : EARLY_UNKNOWN);
        add_live(o, "dentry", 192, 800);
        early_objects_compute(o, lost);
        const struct early_row r = only_row(o);
        check_row(&r, "dentry", 0, lost ? 1000 : 250);
        early_objects_free(o);
    }
}

static void caches_of_one_size_are_one_row_if_the_trace_does_not_name_them(void **state)
{
    (void)state;
    struct early_objects *o = early_objects_new();
    size_t n;
    add_cache(o, "dentry", 192, 1000, 1000, 0);
    add_cache(o, "filp", 192, 200, 200, 0);
    add_cache(o, "kmalloc-192", 192, 300, 300, 0);
    add_cache(o, "inode_cache", 600, 10, 10, 0);
    add_live(o, "", 192, 1100);
    add_live(o, "(kmalloc 192)", 192, 290);
    add_live(o, "inode_cache", 600, 9);
    early_objects_compute(o, false);
    const struct early_row *rows = early_objects_rows(o, &n);
    assert_int_equal(n, 3);
    check_row(&rows[0], "dentry, filp", 100, 100);
    check_row(&rows[1], "kmalloc-192", 10, 10);
    check_row(&rows[2], "inode_cache", 1, 1);
    early_objects_free(o);
}

static void caches_of_kmalloc_that_others_use_are_in_that_row_too(void **state)
{
    (void)state;
    struct early_objects *o = early_objects_new();
    early_objects_add_cache(o, &(struct early_cache){.name = "kmalloc-64",
                                                     .stride_bytes = 64,
                                                     .active = 500,
                                                     .slots = 512,
                                                     .is_kmalloc = true,
                                                     .has_others = true});
    add_cache(o, "anon_vma_chain", 64, 100, 128, 0);
    add_live(o, "", 64, 150);
    add_live(o, "(kmalloc 64)", 64, 350);
    early_objects_compute(o, false);
    const struct early_row r = only_row(o);
    check_row(&r, "kmalloc-64, anon_vma_chain", 100, 140);
    early_objects_free(o);
}

static void a_named_object_of_a_kmalloc_cache_counts_there(void **state)
{
    (void)state;
    struct early_objects *o = early_objects_new();
    add_cache(o, "kmalloc-64", 64, 100, 100, 0);
    add_live(o, "kmalloc-64", 64, 30);
    add_live(o, "(kmalloc 64)", 64, 60);
    early_objects_compute(o, false);
    const struct early_row r = only_row(o);
    check_row(&r, "kmalloc-64", 10, 10);
    early_objects_free(o);
}

static void what_belongs_to_the_tracing_is_apart(void **state)
{
    (void)state;
    struct early_objects *o = early_objects_new();
    size_t n;
    add_cache(o, "kmalloc-64", 64, 5000, 5056, 10);
    add_cache(o, "trace_event_file", 96, 1500, 1512, 0);
    add_cache(o, "ip_fib_alias", 56, 73, 73, 0);
    add_cache(o, "ftrace_event_field", 56, 4200, 4234, 0);
    add_live(o, "(kmalloc 64)", 64, 800);
    add_live(o, "", 56, 16);
    early_objects_set_own(o, 64, 4114);
    early_objects_compute(o, false);
    const struct early_row *rows = early_objects_rows(o, &n);
    assert_int_equal(n, 3);
    check_row(&rows[0], "kmalloc-64", 5000 - 10 - 800 - 4114, 5056 - 800 - 4114);
    assert_int_equal(rows[0].own_low, 4114);
    assert_int_equal(rows[0].own_high, 4114);
    /* Whose the 16 traced objects are is not known. */
    check_row(&rows[1], "ip_fib_alias, ftrace_event_field", 4273 - 16 - 4200, 4273 - (4200 - 16));
    assert_int_equal(rows[1].own_low, 4200 - 16);
    assert_int_equal(rows[1].own_high, 4200);
    check_row(&rows[2], "trace_event_file", 0, 0);
    assert_int_equal(rows[2].own_low, 1500);
    assert_int_equal(rows[2].own_high, 1500);
    early_objects_free(o);
}

static void frees_of_older_objects_are_counted_by_cache(void **state)
{
    (void)state;
    struct early_objects *o = early_objects_new();
    add_cache(o, "filp", 256, 20, 20, 0);
    early_objects_add_frees(o, "filp", 7);
    early_objects_add_frees(o, "", 3);
    early_objects_add_frees(o, "gone", 2);
    add_live(o, "destroyed", 320, 5);
    early_objects_compute(o, false);
    assert_int_equal(only_row(o).frees, 7);
    assert_int_equal(early_objects_sums(o).unplaced_objects, 5);
    early_objects_free(o);
}

static void the_log_tells_what_was_reserved(void **state)
{
    (void)state;
    struct early_reserved r;
    assert_true(early_reserved_parse(
        &r, "Memory: 432144K/523768K available (16384K kernel code, 2507K rwdata, 10912K rodata, 4024K init, "
            "5288K bss, 71452K reserved, 0K cma-reserved)"));
    assert_int_equal(r.total, 523768 * 1024);
    assert_int_equal(r.available, 432144 * 1024);
    assert_int_equal(r.code, 16384 * 1024);
    assert_int_equal(r.rwdata, 2507 * 1024);
    assert_int_equal(r.rodata, 10912 * 1024);
    assert_int_equal(r.init, 4024 * 1024);
    assert_int_equal(r.bss, 5288 * 1024);
    assert_int_equal(r.reserved, 71452 * 1024);
    assert_false(early_reserved_parse(&r, "Memory: many"));
    assert_true(early_reserved_parse(&r, "Memory: 1K/2K available K reserved"));
    assert_int_equal(r.reserved, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slabs_of_cpus_lower_one_bound_and_free_slots_raise_the_other),
        cmocka_unit_test(bounds_are_never_below_nothing_nor_above_what_is_active),
        cmocka_unit_test(without_the_slabs_of_cpus_or_after_a_loss_there_is_no_lower_bound),
        cmocka_unit_test(caches_of_one_size_are_one_row_if_the_trace_does_not_name_them),
        cmocka_unit_test(caches_of_kmalloc_that_others_use_are_in_that_row_too),
        cmocka_unit_test(a_named_object_of_a_kmalloc_cache_counts_there),
        cmocka_unit_test(what_belongs_to_the_tracing_is_apart),
        cmocka_unit_test(frees_of_older_objects_are_counted_by_cache),
        cmocka_unit_test(the_log_tells_what_was_reserved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
