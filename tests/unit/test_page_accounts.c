/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * src/model/kernel/page_accounts: random blocks that are allocated, split, and freed whole or in parts, against a list
 * of all pages; and the pages under objects, wherever the direct mapping begins.
 */
#include "test_kernel.h"

#include "model/kernel/kmem_event.h"
#include "model/kernel/page_accounts.h"

#define PAGES     4096
#define TYPES     3
#define PROCESSES 5
#define EVENTS    20000

static uint64_t state_of_draw;

static uint32_t draw(uint32_t below)
{
    state_of_draw = state_of_draw * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((state_of_draw >> 33) % below);
}

/* Of each page: by whom it was allocated; 0: it is free. */
struct naive {
    struct {
        uint32_t type, process, order, block;
    } pages[PAGES];
    uint32_t blocks; /* so many were allocated */
    uint64_t live[TYPES], of_process[PROCESSES], here[PROCESSES], unmatched, without_free, parts, failures;
    uint64_t peak, at_peak[TYPES], blocks_at_peak[TYPES];
};

static uint64_t live_pages(const struct naive *n)
{
    uint64_t live = 0;
    for (size_t i = 0; i < PAGES; i++)
        live += n->pages[i].process != 0;
    return live;
}

/* Counts blocks of which a page is live, by type. */
static void count_blocks(const struct naive *n, uint64_t blocks[static TYPES])
{
    bool *seen = mem_array(n->blocks + 1, sizeof(*seen));
    memset(blocks, 0, TYPES * sizeof(*blocks));
    for (size_t i = 0; i < PAGES; i++)
        if (n->pages[i].process && !seen[n->pages[i].block]) {
            seen[n->pages[i].block] = true;
            blocks[n->pages[i].type]++;
        }
    free(seen);
}

/* Before an event by which pages may go. */
static void keep_peak(struct naive *n)
{
    const uint64_t live = live_pages(n);
    if (live <= n->peak)
        return;
    n->peak = live;
    memcpy(n->at_peak, n->live, sizeof(n->live));
    count_blocks(n, n->blocks_at_peak);
}

static void let_go(struct naive *n, uint32_t page)
{
    n->live[n->pages[page].type]--;
    n->of_process[n->pages[page].process - 1]--;
    n->pages[page].process = 0;
}

static void apply(struct naive *n, const struct page_event *e)
{
    uint64_t live = 0;
    bool part = false;
    keep_peak(n);
    n->blocks += e->kind == PAGE_EVENT_ALLOC;
    for (uint32_t i = (uint32_t)e->frame; i < e->frame + (1u << e->order); i++) {
        const bool was_live = n->pages[i].process;
        if (e->kind == PAGE_EVENT_ALLOC) {
            n->without_free += was_live;
            if (was_live)
                let_go(n, i);
            n->pages[i].type = e->migrate_type;
            n->pages[i].process = (uint32_t)e->process + 1;
            n->pages[i].order = e->order;
            n->pages[i].block = n->blocks;
            n->live[e->migrate_type]++;
            n->of_process[e->process]++;
        } else if (was_live) {
            part = part || n->pages[i].order > e->order;
            let_go(n, i);
            live++;
        } else {
            n->unmatched++;
        }
    }
    n->parts += part;
    if (e->kind == PAGE_EVENT_FREE)
        n->here[e->process] += live;
}

static void run(struct naive *n, struct page_accounts *a)
{
    static const char *const comms[] = {"a", "b"};
    for (uint32_t i = 0; i < EVENTS; i++) {
        const uint32_t order = draw(5);
        struct page_event e = {.kind = draw(100) < 55 ? PAGE_EVENT_ALLOC : PAGE_EVENT_FREE,
                               .frame = (uint64_t)draw(PAGES >> order) << order,
                               .order = order,
                               .migrate_type = draw(TYPES),
                               .gfp = 1u << draw(2),
                               .process = (int32_t)draw(PROCESSES),
                               .comm = comms[draw(2)]};
        if (!draw(100)) {
            e.kind = PAGE_EVENT_ALLOC;
            e.frame = PAGE_EVENT_NO_FRAME;
            n->failures++;
        } else {
            apply(n, &e);
        }
        assert_true(page_accounts_add(a, &e));
    }
}

static void random_blocks(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed < 10; seed++) {
        state_of_draw = seed;
        size_t rows;
        uint64_t at_peak[TYPES] = {0}, blocks[TYPES] = {0}, blocks_at_peak[TYPES] = {0};
        uint64_t live[TYPES] = {0}, of_process[PROCESSES] = {0}, here[PROCESSES] = {0};
        struct naive *n = mem_alloc(sizeof(*n));
        struct page_accounts *a = page_accounts_new();
        run(n, a);
        const struct page_totals *t = page_accounts_totals(a);
        assert_int_equal(t->events, EVENTS);
        assert_int_equal(t->live_pages, live_pages(n));
        assert_int_equal(t->unmatched_pages, n->unmatched);
        assert_int_equal(t->pages_without_free, n->without_free);
        assert_int_equal(t->frees_in_parts, n->parts);
        assert_int_equal(t->failures, n->failures);
        assert_int_equal(t->allocated_pages, t->freed_pages + t->pages_without_free + t->live_pages);
        page_accounts_update_peak(a);
        keep_peak(n);
        assert_int_equal(t->peak_other_pages, n->peak);
        const struct page_account *row = page_accounts_rows(a, &rows);
        for (size_t i = 0; i < rows; i++)
            if (row[i].migrate_type != PAGE_EVENT_NO_TYPE) {
                live[row[i].migrate_type] += row[i].allocated_pages - row[i].freed_pages;
                blocks[row[i].migrate_type] += row[i].allocations - row[i].freed_blocks;
                at_peak[row[i].migrate_type] += row[i].at_peak_pages;
                blocks_at_peak[row[i].migrate_type] += row[i].at_peak_blocks;
            }
        assert_memory_equal(live, n->live, sizeof(live));
        assert_memory_equal(at_peak, n->at_peak, sizeof(at_peak));
        assert_memory_equal(blocks_at_peak, n->blocks_at_peak, sizeof(blocks_at_peak));
        count_blocks(n, live);
        assert_memory_equal(blocks, live, sizeof(blocks));
        row = page_accounts_processes(a, &rows);
        for (size_t i = 0; i < rows; i++) {
            of_process[row[i].process] += row[i].allocated_pages - row[i].freed_pages;
            here[row[i].process] += row[i].freed_here_pages;
        }
        assert_memory_equal(of_process, n->of_process, sizeof(of_process));
        assert_memory_equal(here, n->here, sizeof(here));
        page_accounts_free(a);
        free(n);
    }
}

static void add_block(struct page_accounts *a, uint64_t frame, uint32_t order)
{
    const struct page_event e = {
        .frame = frame, .order = order, .migrate_type = 1, .process = KMEM_EVENT_NO_PROCESS};
    assert_true(page_accounts_add(a, &e));
    page_accounts_last(a, frame, order, 0);
}

static void pages_under_objects(void **state)
{
    (void)state;
    static const uint64_t begins[] = {UINT64_C(0xffff888000000000), UINT64_C(0xffff9a1c40000000)};
    for (size_t k = 0; k < 2; k++) {
        struct page_accounts *a = page_accounts_new();
        const struct page_totals *t = page_accounts_totals(a);
        add_block(a, 7, 0);
        page_accounts_object(a, begins[k] + (UINT64_C(90000) << 12) + 64, false, 0); /* of an older slab */
        for (uint64_t i = 0; i < 5; i++) {
            add_block(a, 64 + 8 * i, 3);
            page_accounts_object(a, begins[k] + ((64 + 8 * i) << 12) + 256 * i + 4096 * i, false, 0);
        }
        assert_int_equal(t->slab_pages, 3 * 8); /* two were needed to know where the mapping begins */
        page_accounts_object(a, begins[k] + (UINT64_C(64) << 12) + 8, false, 0);
        page_accounts_object(a, begins[k] + (UINT64_C(72) << 12) + 8, false, 0);
        assert_int_equal(t->slab_pages, 5 * 8);
        add_block(a, 256, 2);
        page_accounts_object(a, begins[k] + (UINT64_C(256) << 12), true, 0);
        assert_int_equal(t->slab_pages, 5 * 8);
        const struct page_event freed = {
            .kind = PAGE_EVENT_FREE, .frame = 64, .order = 3, .process = KMEM_EVENT_NO_PROCESS};
        assert_true(page_accounts_add(a, &freed));
        assert_int_equal(t->live_slab_pages, 4 * 8);
        assert_int_equal(t->live_other_pages, 1);
        size_t rows;
        uint64_t by_use[3] = {0};
        const struct page_account *row = page_accounts_rows(a, &rows);
        for (size_t i = 0; i < rows; i++)
            by_use[row[i].use] += row[i].allocated_pages;
        assert_int_equal(by_use[PAGE_USE_SLAB], 5 * 8);
        assert_int_equal(by_use[PAGE_USE_KMALLOC], 4);
        assert_int_equal(by_use[PAGE_USE_OTHER], 1);
        page_accounts_free(a);
    }
}

static void free_page(struct page_accounts *a, uint64_t frame)
{
    const struct page_event e = {.kind = PAGE_EVENT_FREE, .frame = frame, .process = KMEM_EVENT_NO_PROCESS};
    assert_true(page_accounts_add(a, &e));
}

/* A new slab is known by its first object: what it takes is at no peak, unless pages are freed in between. */
static void peak_without_objects(void **state)
{
    (void)state;
    const uint64_t begin = UINT64_C(0xffff888000000000);
    struct page_accounts *a = page_accounts_new();
    const struct page_totals *t = page_accounts_totals(a);
    for (uint64_t i = 0; i < 4; i++) {
        add_block(a, 64 + 8 * i, 3);
        page_accounts_object(a, begin + ((64 + 8 * i) << 12) + 4096 * i, false, 0);
    }
    page_accounts_object(a, begin + (64 << 12), false, 0);
    page_accounts_object(a, begin + (72 << 12), false, 0);
    add_block(a, 7, 0);
    add_block(a, 9, 0);
    add_block(a, 128, 3);
    page_accounts_object(a, begin + (UINT64_C(128) << 12), false, 0);
    free_page(a, 7);
    page_accounts_update_peak(a);
    assert_int_equal(t->peak_other_pages, 2);
    add_block(a, 136, 3);
    free_page(a, 9);
    page_accounts_object(a, begin + (UINT64_C(136) << 12), false, 0);
    page_accounts_update_peak(a);
    assert_int_equal(t->peak_other_pages, 1 + 8);
    assert_int_equal(t->live_other_pages, 0);
    page_accounts_free(a);
}

static void impossible_blocks(void **state)
{
    (void)state;
    struct page_accounts *a = page_accounts_new();
    struct page_event e = {.order = 31, .process = KMEM_EVENT_NO_PROCESS};
    assert_false(page_accounts_add(a, &e));
    e.order = 0;
    e.frame = UINT64_C(1) << 52;
    assert_false(page_accounts_add(a, &e));
    e.kind = PAGE_EVENT_FREE;
    e.frame = PAGE_EVENT_NO_FRAME;
    assert_false(page_accounts_add(a, &e));
    assert_int_equal(page_accounts_totals(a)->events, 0);
    page_accounts_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST("random blocks, split and freed in parts, page by page", random_blocks),
        TEST("pages under objects", pages_under_objects),
        TEST("the peak of pages that are under no objects", peak_without_objects),
        TEST("blocks that no machine has", impossible_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
