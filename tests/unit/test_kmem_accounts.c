/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * src/model/kernel/kmem_accounts: random allocations and frees, against an account of the simplest kind: a list of all
 * objects, and the sum of all rows at each event.
 */
#include "test_kernel.h"

#include "model/kernel/kmem_accounts.h"

#define SITES     301 /* more than there is room for at first */
#define OBJECTS   500 /* addresses */
#define EVENTS    20000
#define PROCESSES 7
#define CPUS      4 /* of two nodes */
#define LARGE     16384
#define LOSS_AT   (EVENTS - 2000)

static uint64_t state_of_draw;

static uint32_t draw(uint32_t below)
{
    state_of_draw = state_of_draw * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((state_of_draw >> 33) % below);
}

struct naive {
    struct {
        uint64_t bytes; /* 0: free */
        uint32_t site, process, cpu, born;
    } objects[OBJECTS];
    uint64_t pairs[SITES][SITES]; /* freed bytes: allocated by the first, freed by the second */
    uint64_t cross_cpu, cross_node;
    uint64_t of_process[PROCESSES], freed_by_process[PROCESSES];
    uint64_t live[SITES], at_peak[SITES], allocations[SITES], frees_here[SITES];
    uint64_t frees_of[2]; /* of objects that even sites allocated, and odd ones: their caches */
    bool seen[OBJECTS];   /* there was an object at the address, as far as events tell */
    uint64_t sum, peak, matched, unmatched, unexplained, after_loss, without_event, null;
    uint64_t settled[SITES], settled_of[PROCESSES]; /* bytes */
    struct {
        uint32_t object;
        bool is_large; /* the latest event of the CPU is the first one of a large object there */
    } latest[CPUS];
    uint64_t repeats;
    uint32_t peak_at; /* which event made the peak */
};

static void let_go(struct naive *n, uint32_t object)
{
    n->live[n->objects[object].site] -= n->objects[object].bytes;
    n->sum -= n->objects[object].bytes;
    n->objects[object].bytes = 0;
}

/* Whether the event tells again of what the latest one of its CPU told, and what that changes. */
static bool repeat(struct naive *n, const struct kmem_event *e, uint32_t object, uint32_t site,
                   uint64_t bytes)
{
    const uint32_t before = n->objects[object].site;
    const bool is_after = n->latest[e->cpu].is_large && n->latest[e->cpu].object == object;
    n->latest[e->cpu].object = object;
    n->latest[e->cpu].is_large = e->kind == KMEM_EVENT_ALLOC && bytes == LARGE;
    if (!is_after || e->kind == KMEM_EVENT_FREE || n->objects[object].bytes != bytes || before == site)
        return false;
    n->latest[e->cpu].is_large = false;
    n->repeats++;
    n->allocations[before]--;
    n->live[before] -= bytes;
    n->allocations[site]++;
    n->live[site] += bytes;
    if (n->objects[object].born <= n->peak_at) {
        n->at_peak[before] -= bytes;
        n->at_peak[site] += bytes;
    }
    n->objects[object].site = site;
    return true;
}

/* Does to the naive account what the event says. */
static void apply(struct naive *n, const struct kmem_event *e, uint32_t object, uint32_t site, uint64_t bytes)
{
    const bool is_live = n->objects[object].bytes != 0, allocates = e->kind == KMEM_EVENT_ALLOC;
    if (repeat(n, e, object, site, bytes))
        return;
    if (allocates) {
        n->without_event += is_live;
        if (is_live)
            let_go(n, object);
        n->objects[object].bytes = bytes;
        n->objects[object].site = site;
        n->objects[object].process = (uint32_t)e->process;
        n->objects[object].cpu = e->cpu;
        n->objects[object].born = (uint32_t)(e->time_ns / 1000);
        n->of_process[e->process] += bytes;
        n->allocations[site]++;
        n->live[site] += bytes;
        n->sum += bytes;
        if (n->sum > n->peak) {
            n->peak = n->sum;
            n->peak_at = (uint32_t)(e->time_ns / 1000);
            memcpy(n->at_peak, n->live, sizeof(n->at_peak));
        }
    } else if (is_live) {
        n->matched++;
        n->pairs[n->objects[object].site][site] += n->objects[object].bytes;
        n->cross_cpu += n->objects[object].cpu != e->cpu;
        n->cross_node += n->objects[object].cpu / 2 != e->cpu / 2;
        n->freed_by_process[e->process] += n->objects[object].bytes;
        n->frees_here[site]++;
        n->frees_of[n->objects[object].site % 2]++;
        let_go(n, object);
    } else {
        n->unmatched++;
        n->after_loss += e->time_ns >= 1000 * LOSS_AT;
        n->unexplained += e->time_ns < 1000 * LOSS_AT && n->seen[object];
    }
    n->seen[object] = true;
}

/* Some events are large; often the same comes again soon, from another call. */
struct again {
    bool is_due;
    uint32_t object, cpu, process;
};

/* Only some of the addresses are used at first, so that the sum has many peaks. */
static void run(struct naive *n, struct kmem_accounts *a, uint32_t events)
{
    struct again again = {.is_due = false};
    for (uint32_t i = 0; i < events; i++) {
        uint32_t object = draw(1 + (uint64_t)OBJECTS * i / events), site = draw(SITES),
                 bytes = draw(20) ? 8 * (1 + draw(64)) : LARGE;
        bool allocates = draw(100) < 55;
        uint32_t cpu = draw(CPUS), process = draw(PROCESSES);
        if (again.is_due && draw(2)) {
            again.is_due = false;
            object = again.object;
            bytes = LARGE;
            cpu = again.cpu;
            process = again.process;
            allocates = true;
        } else if (allocates && bytes == LARGE) {
            again = (struct again){true, object, cpu, process};
        }
        struct kmem_event e = {.kind = allocates ? KMEM_EVENT_ALLOC : KMEM_EVENT_FREE,
                               .time_ns = 1000 * i,
                               .cpu = cpu,
                               .process = (int32_t)process,
                               .address = UINT64_C(0xffff888000000000) + 64u * object,
                               .call_site = 0xffffffff81000000 + site,
                               .requested_bytes = bytes - 3,
                               .allocated_bytes = bytes,
                               .is_kmalloc = bytes == LARGE,
                               .cache = allocates && site % 2 ? "odd" : ""}; /* kfree() does not tell */
        if (!draw(50)) {
            e.kind = KMEM_EVENT_FREE;
            e.address = draw(2) ? 0 : KMEM_EVENT_NO_OBJECT;
            n->null++;
            n->latest[cpu].is_large = false;
        } else {
            apply(n, &e, object, site, bytes);
        }
        if (i == LOSS_AT)
            kmem_accounts_lose(a, false);
        kmem_accounts_add(a, &e);
        if (!draw(1000)) { /* it may be asked for at any time */
            kmem_accounts_update_peak(a);
            for (cpu = 0; cpu < CPUS; cpu++)
                n->latest[cpu].is_large = false; /* what was shown stays */
        }
    }
}

/* Rows of one call differ in the class of sizes. */
static void assert_rows(const struct naive *n, const struct kmem_accounts *a)
{
    size_t rows;
    const struct kmem_account *row = kmem_accounts_rows(a, &rows);
    struct naive found = {.sum = 0};
    for (size_t i = 0; i < rows; i++, row++) {
        size_t site = row->call_site - 0xffffffff81000000;
        found.allocations[site] += row->allocations;
        found.frees_here[site] += row->frees_here;
        found.live[site] += row->allocated_bytes - row->freed_bytes;
        found.at_peak[site] += row->at_peak_bytes;
        assert_int_equal(row->at_peak_bytes - row->at_peak_requested_bytes, 3 * row->at_peak_objects);
        assert_true(row->allocations << row->size_class <= row->allocated_bytes);
        assert_true(!row->allocations || row->allocations << (row->size_class + 1) > row->allocated_bytes);
        const bool odd = !strcmp(kmem_accounts_text(a, row->cache), "odd");
        assert_true(!row->allocations || odd == site % 2);
        found.frees_of[odd] += row->frees_here;
    }
    assert_memory_equal(found.allocations, n->allocations, sizeof(found.allocations));
    assert_memory_equal(found.frees_here, n->frees_here, sizeof(found.frees_here));
    assert_memory_equal(found.frees_of, n->frees_of, sizeof(found.frees_of));
    assert_memory_equal(found.live, n->live, sizeof(found.live));
    assert_memory_equal(found.at_peak, n->at_peak, sizeof(found.at_peak));
}

/* The same events by process, and by who frees whose objects. */
static void assert_others(const struct naive *n, const struct kmem_accounts *a)
{
    size_t rows;
    uint64_t(*pairs)[SITES] = mem_array(SITES, sizeof(*pairs)), cross_cpu = 0, cross_node = 0, live = 0;
    const struct kmem_pair *pair = kmem_accounts_pairs(a, &rows);
    for (size_t i = 0; i < rows; i++) {
        pairs[pair[i].call_site - 0xffffffff81000000][pair[i].free_site - 0xffffffff81000000] +=
            pair[i].freed_bytes;
        cross_cpu += pair[i].cross_cpu_frees;
        cross_node += pair[i].cross_node_frees;
        assert_string_equal(kmem_accounts_text(a, pair[i].cache), pair[i].call_site % 2 ? "odd" : "");
    }
    assert_memory_equal(pairs, n->pairs, sizeof(n->pairs));
    assert_int_equal(cross_cpu, n->cross_cpu);
    assert_int_equal(cross_node, n->cross_node);
    assert_int_equal(kmem_accounts_totals(a)->cross_cpu_frees, n->cross_cpu);
    assert_int_equal(kmem_accounts_totals(a)->cross_node_frees, n->cross_node);
    const struct kmem_account *row = kmem_accounts_processes(a, &rows);
    assert_int_equal(rows, PROCESSES);
    for (size_t i = 0; i < rows; i++) {
        assert_int_equal(row[i].allocated_bytes, n->of_process[row[i].process]);
        assert_int_equal(row[i].freed_here_bytes, n->freed_by_process[row[i].process]);
        live += row[i].allocated_bytes - row[i].freed_bytes;
    }
    assert_int_equal(live, n->sum);
    free(pairs);
}

/* The oldest live object of each call. */
static void assert_ages(const struct naive *n, const struct kmem_accounts *a)
{
    size_t rows;
    uint64_t want[SITES] = {0}, found[SITES] = {0};
    const struct kmem_account *row = kmem_accounts_rows(a, &rows);
    for (size_t i = 0; i < OBJECTS; i++) {
        uint64_t age = UINT64_C(1000) * (EVENTS - 1 - n->objects[i].born), *site = &want[n->objects[i].site];
        if (n->objects[i].bytes)
            *site = age > *site ? age : *site;
    }
    for (size_t i = 0; i < rows; i++) {
        uint64_t *site = &found[row[i].call_site - 0xffffffff81000000];
        *site = row[i].oldest_ns > *site ? row[i].oldest_ns : *site;
    }
    assert_memory_equal(found, want, sizeof(want));
}

/* Events after the end: each object that was live can be freed once, by a free or as its address comes again. */
static void run_on(struct naive *n, struct kmem_accounts *a)
{
    const uint64_t end_ns = UINT64_C(1000) * (EVENTS - 1);
    kmem_accounts_end_at(a, end_ns, 500000);
    for (uint32_t i = 1; i <= 2000; i++) {
        const uint32_t object = draw(OBJECTS), site = draw(SITES);
        const struct kmem_event e = {.kind = draw(2) ? KMEM_EVENT_ALLOC : KMEM_EVENT_FREE,
                                     .time_ns = end_ns + UINT64_C(1000) * i,
                                     .address = draw(50) ? UINT64_C(0xffff888000000000) + 64u * object : 0,
                                     .call_site = 0xffffffff81000000 + site,
                                     .requested_bytes = 8,
                                     .allocated_bytes = 8,
                                     .cache = ""};
        assert_true(kmem_accounts_add(a, &e));
        if (i > 500 || !e.address || !n->objects[object].bytes)
            continue;
        n->settled[n->objects[object].site] += n->objects[object].bytes;
        n->settled_of[n->objects[object].process] += n->objects[object].bytes;
        n->objects[object].bytes = 0;
    }
}

static void assert_settled(const struct naive *n, const struct kmem_accounts *a)
{
    size_t rows;
    uint64_t found[SITES] = {0}, sum = 0, objects = 0;
    const struct kmem_account *row = kmem_accounts_rows(a, &rows);
    for (size_t i = 0; i < rows; i++) {
        found[row[i].call_site - 0xffffffff81000000] += row[i].settled_bytes;
        sum += row[i].settled_bytes;
        objects += row[i].settled_objects;
    }
    assert_memory_equal(found, n->settled, sizeof(found));
    row = kmem_accounts_processes(a, &rows);
    for (size_t i = 0; i < rows; i++)
        assert_int_equal(row[i].settled_bytes, n->settled_of[row[i].process]);
    assert_true(sum && sum < n->sum);
    assert_int_equal(kmem_accounts_totals(a)->settled_bytes, sum);
    assert_int_equal(kmem_accounts_totals(a)->settled_objects, objects);
}

static void random_events(void **state)
{
    (void)state;
    for (state_of_draw = 1; state_of_draw < 20; state_of_draw++) {
        const uint64_t seed = state_of_draw;
        struct naive *n = mem_alloc(sizeof(*n));
        struct kmem_accounts *a = kmem_accounts_new();
        for (uint32_t cpu = 0; cpu < CPUS; cpu++)
            kmem_accounts_set_node(a, cpu, cpu / 2);
        run(n, a, EVENTS);
        kmem_accounts_update_peak(a);
        kmem_accounts_update_ages(a);
        const struct kmem_totals *t = kmem_accounts_totals(a);
        assert_int_equal(t->events, EVENTS);
        assert_int_equal(t->frees, n->matched);
        assert_int_equal(t->unmatched_frees, n->unmatched);
        assert_int_equal(t->unexplained_frees, n->unexplained);
        assert_int_equal(t->frees_after_loss, n->after_loss);
        assert_int_equal(t->older_frees, n->unmatched - n->unexplained - n->after_loss);
        assert_true(n->unexplained && n->after_loss && t->older_frees && n->repeats > 100);
        assert_int_equal(t->frees_without_event, n->without_event);
        assert_int_equal(t->null_frees, n->null);
        assert_int_equal(t->allocations, t->frees + t->frees_without_event + t->live_objects);
        assert_int_equal(t->live_bytes, n->sum);
        assert_int_equal(t->live_bytes - t->live_requested_bytes, 3 * t->live_objects);
        assert_int_equal(t->peak_bytes, n->peak);
        assert_rows(n, a);
        assert_others(n, a);
        assert_ages(n, a);
        kmem_accounts_lose(a, true);
        assert_int_equal(t->frees_after_loss, n->unmatched);
        assert_int_equal(t->older_frees + t->unexplained_frees, 0);
        const struct kmem_totals before = *t;
        run_on(n, a);
        assert_settled(n, a);
        assert_rows(n, a); /* as before */
        assert_others(n, a);
        assert_int_equal(t->events, before.events);
        assert_int_equal(t->last_ns, before.last_ns);
        assert_int_equal(t->live_objects, before.live_objects);
        kmem_accounts_free(a);
        free(n);
        state_of_draw = seed;
    }
}

/* The table of live objects grows and shrinks; every object is found again. */
static void many_objects(void **state)
{
    (void)state;
    enum { N = 100000 };
    struct kmem_accounts *a = kmem_accounts_new();
    struct kmem_event e = {.call_site = 1, .requested_bytes = 8, .allocated_bytes = 8, .cache = ""};
    for (uint64_t i = 1; i <= N; i++) {
        e.kind = KMEM_EVENT_ALLOC;
        e.address = 32 * i;
        kmem_accounts_add(a, &e);
    }
    assert_int_equal(kmem_accounts_totals(a)->live_objects, N);
    for (uint64_t i = N; i; i--) {
        e.kind = KMEM_EVENT_FREE;
        e.address = 32 * (i * 7919 % N + 1); /* each once, in another order */
        kmem_accounts_add(a, &e);
    }
    assert_int_equal(kmem_accounts_totals(a)->frees, N);
    assert_int_equal(kmem_accounts_totals(a)->unmatched_frees, 0);
    assert_int_equal(kmem_accounts_totals(a)->live_objects, 0);
    kmem_accounts_free(a);
}

static void a_row_for_each_stack(void **state)
{
    (void)state;
    struct kmem_accounts *a = kmem_accounts_new();
    const uint64_t one[] = {7, 8, 9}, other[] = {7, 8};
    struct kmem_event e = {.call_site = 7, .requested_bytes = 8, .allocated_bytes = 8, .cache = ""};
    for (unsigned i = 0; i < 9; i++) {
        e.address = 100 + i;
        e.stack = i % 3 == 2 ? NULL : i % 3 ? other : one;
        e.depth = i % 3 == 2 ? 0 : i % 3 ? 2 : 3;
        kmem_accounts_add(a, &e);
    }
    size_t rows;
    uint32_t depth;
    const struct kmem_account *row = kmem_accounts_rows(a, &rows);
    assert_int_equal(rows, 3);
    for (size_t i = 0; i < rows; i++)
        assert_int_equal(row[i].allocations, 3);
    assert_memory_equal(kmem_accounts_stack(a, row[0].stack, &depth), one, sizeof(one));
    assert_int_equal(depth, 3);
    assert_memory_equal(kmem_accounts_stack(a, row[1].stack, &depth), other, sizeof(other));
    assert_int_equal(depth, 2);
    assert_null(kmem_accounts_stack(a, row[2].stack, &depth));
    kmem_accounts_free(a);
}

/* What no object can be changes nothing. */
static void impossible_sizes(void **state)
{
    (void)state;
    struct kmem_accounts *a = kmem_accounts_new();
    struct kmem_event e = {
        .kind = KMEM_EVENT_ALLOC, .address = 4096, .allocated_bytes = UINT64_C(1) << 32, .cache = ""};
    assert_false(kmem_accounts_add(a, &e));
    e.requested_bytes = 9;
    e.allocated_bytes = 8;
    assert_false(kmem_accounts_add(a, &e));
    e.requested_bytes = e.allocated_bytes = UINT32_MAX;
    e.process = KMEM_EVENT_NO_PROCESS;
    assert_true(kmem_accounts_add(a, &e));
    assert_int_equal(kmem_accounts_totals(a)->live_bytes, UINT32_MAX);
    size_t rows;
    kmem_accounts_processes(a, &rows);
    assert_int_equal(rows, 0);
    kmem_accounts_free(a);
}

/* A program that renames itself on and on does not fill the memory. */
static void many_names(void **state)
{
    (void)state;
    struct kmem_accounts *a = kmem_accounts_new();
    struct kmem_event e = {
        .kind = KMEM_EVENT_ALLOC, .requested_bytes = 8, .allocated_bytes = 8, .cache = "c", .process = 7};
    char name[16];
    for (uint32_t i = 0; i < 20000; i++) {
        snprintf(name, sizeof(name), "%u", i);
        e.comm = name;
        e.address = 4096 + 64 * i;
        assert_true(kmem_accounts_add(a, &e));
    }
    size_t rows, processes;
    const struct kmem_account *row = kmem_accounts_rows(a, &rows);
    assert_int_equal(rows, 16384 + 1);
    assert_string_equal(kmem_accounts_text(a, row[rows - 1].comm), "[other programs]");
    assert_int_equal(row[rows - 1].allocations, 20000 - 16384);
    kmem_accounts_processes(a, &processes);
    assert_int_equal(processes, 16384 + 1);
    kmem_accounts_free(a);
}

static void requests_without_an_object(void **state)
{
    (void)state;
    struct kmem_accounts *a = kmem_accounts_new();
    struct kmem_event e = {.kind = KMEM_EVENT_ALLOC, .call_site = 1, .requested_bytes = 8, .cache = ""};
    kmem_accounts_add(a, &e);
    e.address = KMEM_EVENT_NO_OBJECT;
    kmem_accounts_add(a, &e);
    size_t rows;
    kmem_accounts_rows(a, &rows);
    assert_int_equal(kmem_accounts_totals(a)->no_allocations, 2);
    assert_int_equal(kmem_accounts_totals(a)->allocations + rows, 0);
    kmem_accounts_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST("random allocations and frees, to the byte, with the peak of each row, and what is freed after "
             "the end",
             random_events),
        TEST("a hundred thousand objects are found again", many_objects),
        TEST("a row for each stack", a_row_for_each_stack),
        TEST("sizes that no object has", impossible_sizes),
        TEST("any number of names of programs", many_names),
        TEST("requests that got no object", requests_without_an_object),
    };
    return cmocka_run_group_tests_name("kmem_accounts", tests, NULL, NULL);
}
