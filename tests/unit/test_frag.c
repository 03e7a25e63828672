/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * src/model/kernel/frag*: indices of free blocks, what slabs hold, holes of vmalloc, and slabs that live objects pin.
 */
#include "test_kernel.h"

#include "model/kernel/frag.h"
#include "model/kernel/frag_sites.h"
#include "model/kernel/frag_tables.h"

#define PAGE 4096

static void indices_are_those_of_the_kernel(void **state)
{
    (void)state;
    const uint64_t blocks[] = {10, 4, 0, 1}, none[] = {0, 0, 0, 0}, one[] = {0, 0, 1, 0};
    assert_int_equal(frag_unusable_index(blocks, 4, 0), 0);
    assert_int_equal(frag_unusable_index(blocks, 4, 1), 384); /* 10 of 26 pages */
    assert_int_equal(frag_unusable_index(blocks, 4, 3), 692);
    assert_int_equal(frag_unusable_index(none, 4, 0), 1000);
    assert_int_equal(frag_extfrag_index(blocks, 4, 3), -1000);
    assert_int_equal(frag_extfrag_index(blocks, 4, 4), 825); /* 1000 - (1000 + 26000 / 16) / 15 */
    assert_int_equal(frag_extfrag_index(none, 4, 0), 0);
    assert_int_equal(frag_extfrag_index(one, 4, 3), -500);
}

static struct memory_cache *add_cache(struct memory_state *s, const char *name, uint64_t object,
                                      uint64_t stride, uint64_t per_slab, uint64_t slabs)
{
    struct memory_cache *c = vec_push(&s->caches);
    c->name = mem_strdup(name);
    memory_cache_set(c, CACHE_OBJECT_BYTES, object);
    memory_cache_set(c, CACHE_STRIDE_BYTES, stride);
    memory_cache_set(c, CACHE_PER_SLAB, per_slab);
    memory_cache_set(c, CACHE_ORDER, 0);
    memory_cache_set(c, CACHE_SLABS, slabs);
    memory_cache_set(c, CACHE_ROOM, slabs * per_slab);
    return c;
}

static void parts_of_slabs_add_up(void **state)
{
    (void)state;
    struct memory_state s = {.page_bytes = PAGE, .cpus = 2, .nodes = 1};
    struct memory_cache *c = add_cache(&s, "a", 90, 100, 40, 10);
    struct frag_cache f;
    memory_cache_set(c, CACHE_USED, 370);
    memory_cache_set(c, CACHE_PARTIAL, 4);
    memory_cache_set(c, CACHE_PARTIAL_USED, 3);
    memory_cache_set(c, CACHE_CPU_SLABS, 0);
    frag_cache_compute(&f, c, &s);
    assert_int_equal(f.at[FRAG_BYTES].low, 40960);
    assert_int_equal(f.at[FRAG_FREE].low, 3000);
    assert_int_equal(f.at[FRAG_TAILS].low, 960);
    assert_int_equal(f.at[FRAG_PADDING].low, 3700);
    assert_int_equal(f.at[FRAG_OBJECTS].low, 33300);
    assert_int_equal(f.lost.low, 7660);
    assert_false(f.smaller_slabs);
    /* one slab of the four is empty for certain; three, if one has all three objects - but 370 objects need 10 */
    assert_int_equal(f.at[FRAG_SHRINK].low, 0);
    assert_int_equal(f.at[FRAG_SHRINK].high, 0);
    memory_cache_set(c, CACHE_USED, 243); /* six full slabs, and three objects */
    frag_cache_compute(&f, c, &s);
    assert_int_equal(f.at[FRAG_SHRINK].low, PAGE);
    assert_int_equal(f.at[FRAG_SHRINK].high, 3 * PAGE);
    memory_cache_set(c, CACHE_SHEAF, 2); /* these three may wait in sheaves */
    frag_cache_compute(&f, c, &s);
    assert_int_equal(f.at[FRAG_SHRINK].high, 4 * PAGE);
    memory_state_release(&s);
}

static void unknown_parts_stay_unknown(void **state)
{
    (void)state;
    struct memory_state s = {.page_bytes = PAGE};
    struct memory_cache *c = add_cache(&s, "a", UINT64_MAX, 100, 40, 10);
    struct frag f;
    memory_cache_set(c, CACHE_USED, 370);
    frag_compute(&f, &s, &(struct frag_range){.known = false});
    const struct frag_cache *a = &f.caches.at[0];
    assert_true(a->at[FRAG_BYTES].known && a->at[FRAG_FREE].known);
    assert_false(a->at[FRAG_PADDING].known || a->at[FRAG_OBJECTS].known || a->at[FRAG_SHRINK].known ||
                 a->at[FRAG_CPU_FREE].known || a->partial.known || f.whole.meminfo_bytes.known);
    frag_release(&f);
    memory_state_release(&s);
}

static void add_area(struct memory_state *s, const char *caller, uint64_t begin, uint64_t end)
{
    *vec_push(&s->areas) = (struct memory_area){.placed = end != 0,
                                                .begin = begin,
                                                .end = end,
                                                .bytes = end ? end - begin : PAGE,
                                                .caller = mem_strdup(caller)};
}

static void holes_are_between_areas(void **state)
{
    (void)state;
    struct memory_state s = {.page_bytes = PAGE};
    struct frag_vmalloc v;
    add_area(&s, "a", 0x9000, 0xb000);
    add_area(&s, "b", 0, 0x4000);
    add_area(&s, "a", 0x1000, 0x2000); /* within another one: only a hostile text has that */
    add_area(&s, "b", UINT64_C(1) << 40, (UINT64_C(1) << 40) + 0x1000); /* of another range */
    frag_vmalloc_compute(&v, &s);
    assert_int_equal(v.areas, 4);
    assert_int_equal(v.holes, 1);
    assert_int_equal(v.holes_bytes.low, 0x5000);
    assert_int_equal(v.largest_hole_bytes.low, 0x5000);
    assert_string_equal(v.callers.at[0].name, "b");
    assert_int_equal(v.callers.at[0].bytes, 0x5000);
    vec_release(&v.callers);
    memory_state_release(&s);
}

static void event(struct kmem_accounts *a, enum kmem_event_kind kind, uint64_t address, uint64_t site)
{
    kmem_accounts_add(a, &(struct kmem_event){.kind = kind,
                                              .address = address,
                                              .call_site = site,
                                              .requested_bytes = 90,
                                              .allocated_bytes = 100,
                                              .cache = "a"});
}

/* A slab of 40 places: 30 are filled by two calls, and freed but for three. Another one has an object of the trace. */
static struct kmem_accounts *half_empty(bool keep)
{
    struct kmem_accounts *a = kmem_accounts_new();
    if (keep)
        kmem_accounts_keep_freed(a);
    for (uint64_t i = 0; i < 30; i++)
        event(a, KMEM_EVENT_ALLOC, 0x10000 + 100 * i, i < 20 ? 1 : 2);
    for (uint64_t i = 1; i < 29; i++)
        if (i != 10)
            event(a, KMEM_EVENT_FREE, 0x10000 + 100 * i, 3);
    event(a, KMEM_EVENT_ALLOC, 0x20000, 2);
    return a;
}

static void live_objects_pin_slabs(void **state)
{
    (void)state;
    struct memory_state s = {.page_bytes = PAGE};
    struct frag_sites f;
    add_cache(&s, "a", 90, 100, 40, 2);
    for (int keep = 0; keep < 2; keep++) {
        struct kmem_accounts *a = half_empty(keep);
        frag_sites_compute(&f, a, &s, keep);
        assert_int_equal(f.all.len, 3);
        const struct frag_site *first = &f.all.at[0], *second = &f.all.at[1];
        assert_int_equal(first->live_objects, 2);
        assert_int_equal(first->live_slack_bytes, 20);
        assert_int_equal(first->slack_bytes, 200);
        /* 27 of 40 places are seen to be free, 37 may be; a third is charged to the second call */
        assert_int_equal(first->pinned_bytes.low, keep ? 1800 : 0);
        assert_int_equal(first->pinned_bytes.high, 2466);
        assert_int_equal(second->pinned_bytes.low, keep ? 900 : 0);
        assert_int_equal(second->pinned_bytes.high, 1234 + 3900);
        assert_int_equal(second->half_empty_slabs, 2);
        frag_sites_release(&f);
        kmem_accounts_free(a);
    }
    memory_state_release(&s);
}

/* Before Linux 6.18: the allocations of one call have no name, and frees tell it. */
static void frees_name_the_cache(void **state)
{
    (void)state;
    struct memory_state s = {.page_bytes = PAGE};
    struct frag_sites f;
    struct kmem_accounts *a = kmem_accounts_new();
    struct kmem_event e = {.call_site = 1, .requested_bytes = 90, .allocated_bytes = 100, .cache = ""};
    add_cache(&s, "a", 90, 100, 40, 2);
    add_cache(&s, "b", 90, 100, 40, 2);
    kmem_accounts_keep_freed(a);
    for (uint64_t i = 0; i < 30; i++) {
        e.address = 0x10000 + 100 * i;
        kmem_accounts_add(a, &e);
    }
    e.call_site = 2; /* nothing of this call is freed, and two caches have that size */
    e.address = 0x30000;
    kmem_accounts_add(a, &e);
    e.kind = KMEM_EVENT_FREE;
    e.cache = "a";
    for (uint64_t i = 1; i < 30; i++) {
        e.address = 0x10000 + 100 * i;
        kmem_accounts_add(a, &e);
    }
    frag_sites_compute(&f, a, &s, true);
    assert_string_equal(kmem_accounts_text(a, f.all.at[0].cache), "a");
    assert_int_equal(f.all.at[0].pinned_bytes.low, 2900);
    assert_int_equal(f.all.at[0].pinned_bytes.high, 3900);
    assert_string_equal(kmem_accounts_text(a, f.all.at[1].cache), "");
    assert_false(f.all.at[1].pinned_bytes.known);
    frag_sites_release(&f);
    memory_cache_set(memory_state_cache(&s, "a"), CACHE_OBJECT_BYTES, 91); /* it cannot be that cache */
    frag_sites_compute(&f, a, &s, true);
    assert_false(f.all.at[0].pinned_bytes.known);
    frag_sites_release(&f);
    kmem_accounts_free(a);
    memory_state_release(&s);
}

static void slabs_of_unknown_size_pin_nothing_known(void **state)
{
    (void)state;
    struct memory_state s = {.page_bytes = PAGE};
    struct frag_sites f;
    struct kmem_accounts *a = half_empty(true);
    add_cache(&s, "b", 90, 100, 40, 2);
    frag_sites_compute(&f, a, &s, true);
    assert_false(f.all.at[0].pinned_bytes.known);
    assert_int_equal(f.all.at[0].live_bytes, 200);
    frag_sites_release(&f);
    kmem_accounts_free(a);
    memory_state_release(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST("indices of free blocks are those of the kernel", indices_are_those_of_the_kernel),
        TEST("parts of slabs add up, and shrinking has bounds", parts_of_slabs_add_up),
        TEST("parts that are not known stay so", unknown_parts_stay_unknown),
        TEST("holes are between areas of one range", holes_are_between_areas),
        TEST("live objects pin half-empty slabs, and share them", live_objects_pin_slabs),
        TEST("frees name the cache where allocations do not", frees_name_the_cache),
        TEST("slabs of an unknown size pin nothing that is known", slabs_of_unknown_size_pin_nothing_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
