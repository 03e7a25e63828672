/* SPDX-License-Identifier: BSD-2-Clause */
/* src/model/kernel/clock_skew: events in the wrong order, as CPUs with clocks of their own make them. */
#include "test_kernel.h"

#include "model/kernel/clock_skew.h"

#define OBJECT UINT64_C(0xffff888100000000)

static struct kmem_event event_of(enum kmem_event_kind kind, uint64_t time_us, uint32_t cpu, uint64_t number)
{
    return (struct kmem_event){.kind = kind,
                               .time_ns = 1000 * time_us,
                               .address = OBJECT + 64 * number,
                               .call_site = 1 + (kind == KMEM_EVENT_FREE),
                               .requested_bytes = kind == KMEM_EVENT_ALLOC ? 50 : 0,
                               .allocated_bytes = kind == KMEM_EVENT_ALLOC ? 64 : 0,
                               .cache = "cache",
                               .comm = "comm",
                               .cpu = cpu};
}

struct made {
    struct kmem_accounts *accounts;
    struct clock_skew *skew;
};

static struct made begun(void)
{
    struct made m = {.accounts = kmem_accounts_new()};
    m.skew = clock_skew_new(m.accounts);
    return m;
}

static void add(struct made *m, enum kmem_event_kind kind, uint64_t time_us, uint32_t cpu)
{
    const struct kmem_event e = event_of(kind, time_us, cpu, 0);
    clock_skew_add(m->skew, &e);
}

/* Ends it: so many pairs, frees that match nothing, frees without an event, and live objects. */
static void assert_made(struct made *m, uint64_t pairs, uint64_t unmatched, uint64_t implied, uint64_t live)
{
    clock_skew_end(m->skew);
    const struct kmem_totals *t = kmem_accounts_totals(m->accounts);
    assert_int_equal(clock_skew_pairs(m->skew), pairs);
    assert_int_equal(t->unmatched_frees, unmatched);
    assert_int_equal(t->frees_without_event, implied);
    assert_int_equal(t->live_objects, live);
    clock_skew_free(m->skew);
    kmem_accounts_free(m->accounts);
}

static void free_before_allocation(void **state)
{
    struct made m = begun(), same = begun(), late = begun();
    (void)state;
    add(&m, KMEM_EVENT_FREE, 10, 0);
    add(&m, KMEM_EVENT_ALLOC, 50, 1);
    assert_made(&m, 1, 0, 0, 0);
    add(&same, KMEM_EVENT_FREE, 10, 1); /* one CPU has one clock */
    add(&same, KMEM_EVENT_ALLOC, 50, 1);
    assert_made(&same, 0, 1, 0, 1);
    add(&late, KMEM_EVENT_FREE, 10, 0);
    add(&late, KMEM_EVENT_ALLOC, 110, 1);
    assert_made(&late, 0, 1, 0, 1);
}

static void allocation_before_free(void **state)
{
    struct made m = begun(), plain = begun();
    (void)state;
    add(&m, KMEM_EVENT_ALLOC, 1000, 0);
    add(&m, KMEM_EVENT_ALLOC, 2000, 1); /* in truth behind the free */
    add(&m, KMEM_EVENT_FREE, 2010, 0);
    assert_made(&m, 1, 0, 0, 1);
    add(&plain, KMEM_EVENT_ALLOC, 1000, 0);
    add(&plain, KMEM_EVENT_FREE, 1010, 1);
    add(&plain, KMEM_EVENT_ALLOC, 1020, 0);
    add(&plain, KMEM_EVENT_FREE, 1030, 1);
    assert_made(&plain, 0, 0, 0, 0);
}

struct timed {
    uint64_t time_us, number;
    uint32_t cpu;
    enum kmem_event_kind kind;
};

static int by_time(const void *a, const void *b)
{
    const struct timed *x = a, *y = b;
    return x->time_us != y->time_us ? (x->time_us > y->time_us) - (x->time_us < y->time_us)
                                    : (x->cpu > y->cpu) - (x->cpu < y->cpu);
}

#define STEPS   20000u
#define OBJECTS 1000u
#define SKEW_US 60u

/* Two CPUs, one of which is 60 us behind: all events come out as if they were not. */
static void many_events(void **state)
{
    static struct timed events[2 * STEPS];
    static bool live[OBJECTS];
    uint64_t random = 88172645463325252u, n_live = 0, moved = 0;
    size_t n = 0;
    struct made m = begun();
    (void)state;
    for (uint64_t k = 0; k < STEPS; k++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        const uint64_t object = k % OBJECTS, time = 1000 + k;
        for (unsigned twice = 0; twice < 1 + (random >> 20) % 2; twice++) {
            const uint32_t cpu = (uint32_t)(random >> (30 + twice)) & 1;
            events[n++] = (struct timed){time + 5 * twice - (cpu ? SKEW_US : 0), object, cpu,
                                         live[object] ? KMEM_EVENT_FREE : KMEM_EVENT_ALLOC};
            moved += twice && cpu && !events[n - 2].cpu;
            live[object] = !live[object];
        }
    }
    for (size_t k = 0; k < OBJECTS; k++)
        n_live += live[k];
    qsort(events, n, sizeof(*events), by_time);
    for (size_t k = 0; k < n; k++) {
        const struct kmem_event e =
            event_of(events[k].kind, events[k].time_us, events[k].cpu, events[k].number);
        clock_skew_add(m.skew, &e);
    }
    assert_true(moved > 1000);
    assert_made(&m, moved, 0, 0, n_live);
}

/* Names and stacks are copies, also when more events wait than there was room for. */
static void copies(void **state)
{
    struct made m = begun();
    char name[16];
    uint64_t stack[2] = {1, 0};
    (void)state;
    for (uint64_t k = 0; k < 1000; k++) {
        struct kmem_event e = event_of(KMEM_EVENT_ALLOC, 1, 0, k);
        snprintf(name, sizeof(name), "cache %u", (unsigned)(k % 10));
        stack[1] = k % 10;
        e.cache = e.comm = name;
        e.stack = stack;
        e.depth = 2;
        clock_skew_add(m.skew, &e);
    }
    memset(name, 'x', sizeof(name) - 1);
    clock_skew_end(m.skew);
    size_t n;
    const struct kmem_account *rows = kmem_accounts_rows(m.accounts, &n);
    assert_int_equal(n, 10);
    for (size_t k = 0; k < n; k++) {
        uint32_t depth;
        snprintf(name, sizeof(name), "cache %u", (unsigned)k);
        assert_string_equal(kmem_accounts_text(m.accounts, rows[k].cache), name);
        assert_string_equal(kmem_accounts_text(m.accounts, rows[k].comm), name);
        assert_int_equal(kmem_accounts_stack(m.accounts, rows[k].stack, &depth)[1], k);
        assert_int_equal(rows[k].allocations, 100);
    }
    assert_made(&m, 0, 0, 0, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST("a free that comes before its allocation", free_before_allocation),
        TEST("an allocation that comes before the free of what was there", allocation_before_free),
        TEST("a CPU that is 60 us behind", many_events),
        TEST("what an event points to is copied", copies),
    };
    return cmocka_run_group_tests_name("clock_skew", tests, NULL, NULL);
}
