/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * src/model/kernel/kmem_accounts: the two events that the kernel has of one large object are one allocation, and what
 * only looks like them is not. Random ones are in test_kmem_accounts.c.
 */
#include "test_kernel.h"

#include "model/kernel/kmem_accounts.h"

#define LARGE 16384

/* One after the other, of one thread on one CPU, unless said otherwise: large objects of kmalloc() by two calls. */
static struct kmem_event inner(void)
{
    return (struct kmem_event){.address = 4096,
                               .call_site = 1,
                               .requested_bytes = 10240,
                               .allocated_bytes = LARGE,
                               .gfp = 5,
                               .is_kmalloc = true,
                               .pid = 7,
                               .process = 7,
                               .cpu = 1,
                               .cache = "(pages)"};
}

static struct kmem_event outer(void)
{
    struct kmem_event e = inner();
    e.call_site = 2;
    e.time_ns = 1;
    return e;
}

static void assert_allocations(const struct kmem_accounts *a, uint64_t first, uint64_t second,
                               uint64_t implied)
{
    size_t rows;
    const struct kmem_account *row = kmem_accounts_rows(a, &rows);
    const struct kmem_totals *t = kmem_accounts_totals(a);
    uint64_t found[3] = {0}, bytes = 0;
    for (size_t i = 0; i < rows; i++) {
        found[row[i].call_site] += row[i].allocations;
        bytes += row[i].allocated_bytes;
    }
    assert_int_equal(found[1], first);
    assert_int_equal(found[2], second);
    assert_int_equal(t->allocations, first + second);
    assert_int_equal(t->allocated_bytes, bytes);
    assert_int_equal(t->frees_without_event, implied);
    assert_int_equal(t->allocations, t->frees + t->frees_without_event + t->live_objects);
}

static void a_large_object_is_reported_twice(void **state)
{
    (void)state;
    struct kmem_accounts *a = kmem_accounts_new();
    struct kmem_event e = inner(), other = {.call_site = 2,
                                            .address = 64,
                                            .requested_bytes = 8,
                                            .allocated_bytes = 8,
                                            .pid = 7,
                                            .process = 0,
                                            .cpu = 1,
                                            .context = 4,
                                            .cache = ""};
    for (int i = 0; i < 3; i++) {
        e = inner();
        kmem_accounts_add(a, &other);
        kmem_accounts_add(a, &e);
        other.kind = KMEM_EVENT_FREE; /* by an interrupt, between both events, and so after the peak */
        kmem_accounts_add(a, &other);
        other.kind = KMEM_EVENT_ALLOC;
        e = outer();
        kmem_accounts_add(a, &e);
        e.kind = KMEM_EVENT_FREE;
        kmem_accounts_add(a, &e);
    }
    size_t rows, processes;
    kmem_accounts_update_peak(a);
    assert_allocations(a, 0, 6, 0);
    const struct kmem_account *row = kmem_accounts_rows(a, &rows);
    uint64_t at_peak[3] = {0};
    for (size_t i = 0; i < rows; i++)
        at_peak[row[i].call_site] += row[i].at_peak_bytes;
    assert_int_equal(at_peak[1], 0);
    assert_int_equal(at_peak[2], LARGE + 8);
    assert_int_equal(kmem_accounts_totals(a)->peak_bytes, LARGE + 8);
    row = kmem_accounts_processes(a, &processes);
    assert_int_equal(processes, 2);
    assert_int_equal(row[0].allocations + row[1].allocations, 6);
    kmem_accounts_free(a);
}

/* Adds the first, `between` if that has an address, and the second; counts what they are. */
static void assert_apart(struct kmem_event between, struct kmem_event second)
{
    struct kmem_accounts *a = kmem_accounts_new();
    const struct kmem_event first = inner();
    kmem_accounts_add(a, &first);
    if (between.address)
        kmem_accounts_add(a, &between);
    kmem_accounts_add(a, &second);
    assert_int_equal(kmem_accounts_totals(a)->allocations - (between.address != 0), 2);
    assert_int_equal(kmem_accounts_totals(a)->frees_without_event, 1);
    kmem_accounts_free(a);
}

/* All calls of the recorder have one number, which an import gives out like any other. */
static void calls_without_names(void **state)
{
    (void)state;
    for (uint64_t call = 0; call < 2; call++) {
        struct kmem_accounts *a = kmem_accounts_new();
        struct kmem_event e[] = {inner(), outer()};
        for (int i = 0; i < 2; i++) {
            e[i].call_site = call;
            e[i].is_own = true;
            kmem_accounts_add(a, &e[i]);
        }
        assert_int_equal(kmem_accounts_totals(a)->allocations, 1);
        assert_int_equal(kmem_accounts_totals(a)->frees_without_event, 0);
        kmem_accounts_free(a);
    }
}

static void an_object_in_anothers_place(void **state)
{
    (void)state;
    const struct kmem_event none = {.address = 0};
    struct kmem_event e = outer(), between = inner();
    e.call_site = 1;
    assert_apart(none, e); /* the same call twice */
    e = outer();
    e.requested_bytes++;
    assert_apart(none, e);
    e = outer();
    e.allocated_bytes *= 2;
    assert_apart(none, e);
    e = outer();
    e.gfp++;
    assert_apart(none, e);
    e = outer();
    e.pid++;
    assert_apart(none, e);
    e = outer();
    e.cpu++;
    assert_apart(none, e);
    e = outer();
    e.cpu += 64; /* of the same slot */
    assert_apart(none, e);
    e = outer();
    e.context = 4;
    assert_apart(none, e);
    e = outer();
    between.address = 128;
    between.allocated_bytes = between.requested_bytes = 8;
    assert_apart(between, e); /* the thread did something else meanwhile */
    between = inner();
    between.address += LARGE;
    between.pid++;
    assert_apart(between, e); /* another thread had a large object meanwhile */
}

/* The kernel frees in bulk without an event: both events come again, and then those that small objects have. */
static void large_objects_freed_without_event(void **state)
{
    (void)state;
    struct kmem_accounts *a = kmem_accounts_new();
    struct kmem_event e[] = {inner(), outer(), inner(), outer()};
    for (int i = 0; i < 4; i++)
        kmem_accounts_add(a, &e[i]);
    assert_allocations(a, 0, 2, 1);
    for (int i = 0; i < 4; i++) {
        e[i].requested_bytes = e[i].allocated_bytes = 8192; /* of a cache */
        e[i].address = 1 << 20;
        kmem_accounts_add(a, &e[i]);
    }
    assert_allocations(a, 2, 4, 4);
    kmem_accounts_free(a);
}

static void what_was_shown_stays(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct kmem_accounts *a = kmem_accounts_new();
        struct kmem_event e = inner();
        kmem_accounts_add(a, &e);
        (i ? kmem_accounts_restart_peak : kmem_accounts_update_peak)(a);
        e = outer();
        kmem_accounts_add(a, &e);
        assert_allocations(a, 1, 1, 1);
        kmem_accounts_free(a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST("a large object that is reported twice is one, of the second call",
             a_large_object_is_reported_twice),
        TEST("calls of the recorder, which have no names", calls_without_names),
        TEST("an object that takes another's place is not the same", an_object_in_anothers_place),
        TEST("large objects freed without an event are told apart", large_objects_freed_without_event),
        TEST("an event does not change what was shown before", what_was_shown_stays),
    };
    return cmocka_run_group_tests_name("kmem_repeats", tests, NULL, NULL);
}
