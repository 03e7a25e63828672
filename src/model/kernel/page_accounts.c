/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/kernel/page_accounts.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash_map.h"
#include "base/vec.h"
#include "model/kernel/event_texts.h"
#include "model/kernel/kmem_event.h"

#define ORDER_MAX  18u /* of 4 KiB pages: 1 GiB; no kernel has more */
#define FRAMES_MAX (UINT64_C(1) << 52)
#define PAGE_SHIFT 12u

/* Who has each page: an index into `holders`, plus 1; in chunks, as machines have holes. */
#define CHUNK_PAGES (1u << 15)
struct chunk {
    uint32_t holder[CHUNK_PAGES];
};

/* The rows that a page counts in. */
struct holder {
    uint32_t row, process_row;
};
#define NO_ROW UINT32_MAX

/* The last allocation on a CPU. What a new slab needs besides is allocated before the object for which it was made. */
#define TRIES 8u
struct last {
    uint64_t frame;
    uint32_t order;
    unsigned tries; /* objects that may still be in it */
};

/* The direct mapping begins at a multiple of this (a PUD), also where its place is random. */
#define MAPPING_STEP (UINT64_C(1) << 30)
#define VOTES_ENOUGH 3u

struct page_accounts {
    struct VEC(struct page_account) rows, processes;
    struct VEC(struct holder) holders;
    struct event_texts texts; /* names of programs, and stacks */
    struct VEC(struct chunk *) chunks;
    struct VEC(struct last) last; /* by CPU */
    struct map row_index, process_index, holder_index, chunk_index;
    struct page_totals totals;
    uint64_t mapping, candidate; /* where the direct mapping begins; 0: not known */
    unsigned votes;
    uint64_t peak_number; /* as in kmem_accounts.c; grows when the sum falls from a new peak */
};

struct page_accounts *page_accounts_new(void)
{
    struct page_accounts *a = mem_alloc(sizeof(*a));
    event_texts_init(&a->texts);
    return a;
}

void page_accounts_free(struct page_accounts *a)
{
    if (!a)
        return;
    vec_each (struct chunk *, chunk, &a->chunks)
        free(*chunk);
    vec_release(&a->rows);
    vec_release(&a->processes);
    vec_release(&a->holders);
    event_texts_release(&a->texts);
    vec_release(&a->chunks);
    vec_release(&a->last);
    map_release(&a->row_index);
    map_release(&a->process_index);
    map_release(&a->holder_index);
    map_release(&a->chunk_index);
    free(a);
}

/* ---- pages ---- */

/* NULL: none of the chunk's pages was ever allocated, and none is to be. */
static uint32_t *page_at(struct page_accounts *a, uint64_t frame, bool make)
{
    const uint64_t number = frame / CHUNK_PAGES;
    size_t at = map_get_u64(&a->chunk_index, number);
    if (at == MAP_NONE && !make)
        return NULL;
    if (at == MAP_NONE) {
        at = map_put_u64(&a->chunk_index, number, a->chunks.len, NULL);
        *vec_push(&a->chunks) = mem_alloc(sizeof(struct chunk));
    }
    return &a->chunks.at[at]->holder[frame % CHUNK_PAGES];
}

/* ---- rows ---- */

#define PROCESSES_MAX 262144u /* as in kmem_accounts.c */

/* The row that is like `r` in all that tells rows apart. */
static uint32_t number_like(struct page_accounts *a, const struct page_account *r)
{
    const struct {
        uint64_t gfp;
        uint32_t order, type, comm, stack, use, unused;
    } key = {r->gfp, r->order, r->migrate_type, r->comm, r->stack, r->use, 0};
    bool added;
    size_t number = map_put(&a->row_index, &key, sizeof(key), a->rows.len, &added);
    if (added)
        *vec_push(&a->rows) = (struct page_account){.gfp = r->gfp,
                                                    .order = r->order,
                                                    .migrate_type = r->migrate_type,
                                                    .comm = r->comm,
                                                    .stack = r->stack,
                                                    .use = r->use,
                                                    .peak_number = a->peak_number};
    return (uint32_t)number;
}

static struct holder rows_of(struct page_accounts *a, const struct page_event *e, enum page_use use)
{
    const bool allocates = e->kind != PAGE_EVENT_FREE;
    const struct page_account like = {.order = e->order,
                                      .migrate_type = allocates ? e->migrate_type : PAGE_EVENT_NO_TYPE,
                                      .gfp = e->kind == PAGE_EVENT_ALLOC ? e->gfp : 0,
                                      .comm = event_texts_comm(&a->texts, e->comm),
                                      .use = use,
                                      .stack = event_texts_stack(&a->texts, e->stack, e->depth)};
    struct holder h = {number_like(a, &like), NO_ROW};
    bool added;
    if (e->process == KMEM_EVENT_NO_PROCESS)
        return h;
    uint64_t key = (uint64_t)like.comm << 32 | (uint32_t)e->process;
    if (a->processes.len >= PROCESSES_MAX && map_get_u64(&a->process_index, key) == MAP_NONE)
        key = (uint64_t)event_texts_number(&a->texts, EVENT_TEXTS_OTHERS) << 32;
    h.process_row = (uint32_t)map_put_u64(&a->process_index, key, a->processes.len, &added);
    if (added)
        *vec_push(&a->processes) = (struct page_account){.migrate_type = PAGE_EVENT_NO_TYPE,
                                                         .comm = (uint32_t)(key >> 32),
                                                         .process = (int32_t)(key & UINT32_MAX)};
    return h;
}

static uint32_t number_of_holder(struct page_accounts *a, struct holder h)
{
    bool added;
    size_t number =
        map_put_u64(&a->holder_index, (uint64_t)h.row << 32 | h.process_row, a->holders.len, &added);
    if (added)
        *vec_push(&a->holders) = h;
    return (uint32_t)number;
}

/* ---- the peak of pages that are under no objects ---- */

/* Before a row changes, it stores what was live at the last peak. */
static void store_peak(const struct page_accounts *a, struct page_account *r)
{
    if (r->peak_number == a->peak_number)
        return;
    r->peak_number = a->peak_number;
    r->at_peak_pages = r->allocated_pages - r->freed_pages;
    r->at_peak_blocks = r->allocations - r->freed_blocks;
}

/*
 * The sum falls now. It is compared only here and not when it rises: pages that a new slab takes are known to be under
 * objects an event or two later, and count for nothing if the sum does not fall between. `last_ns` is the time of the
 * event before.
 */
static void leave_peak(struct page_accounts *a)
{
    struct page_totals *t = &a->totals;
    if (t->live_other_pages <= t->peak_other_pages)
        return;
    t->peak_other_pages = t->live_other_pages;
    t->peak_other_ns = t->last_ns;
    a->peak_number++;
}

void page_accounts_update_peak(struct page_accounts *a)
{
    leave_peak(a);
    vec_each (struct page_account, r, &a->rows)
        store_peak(a, r);
}

/* ---- events ---- */

static void release_page(struct page_accounts *a, uint32_t *page)
{
    const struct holder h = a->holders.at[*page - 1];
    struct page_account *r = &a->rows.at[h.row];
    if (r->use == PAGE_USE_OTHER)
        leave_peak(a);
    store_peak(a, r);
    r->freed_pages++;
    if (h.process_row != NO_ROW)
        a->processes.at[h.process_row].freed_pages++;
    a->totals.live_pages--;
    a->totals.live_slab_pages -= r->use == PAGE_USE_SLAB;
    a->totals.live_other_pages -= r->use == PAGE_USE_OTHER;
    *page = 0;
}

/*
 * A block of `holder` has lost the page `frame`, and perhaps others, to a free of 2^order pages, which may be all of
 * it. Blocks begin at a multiple of their size; whoever says otherwise must not make the sums wrap.
 */
static void count_block(struct page_accounts *a, uint32_t holder, uint64_t frame, bool whole)
{
    struct page_account *r = &a->rows.at[a->holders.at[holder - 1].row];
    const uint64_t pages = UINT64_C(1) << r->order, first = frame & ~(pages - 1);
    for (uint64_t i = 0; i < pages && !whole; i++) {
        const uint32_t *page = page_at(a, first + i, false);
        if (page && *page == holder)
            return;
    }
    r->freed_blocks += r->freed_blocks < r->allocations;
}

/* Returns how many of the pages were live. Also tells whether some were only a part of what was allocated together. */
static uint64_t release_block(struct page_accounts *a, const struct page_event *e, bool *part)
{
    const uint64_t end = e->frame + (UINT64_C(1) << e->order);
    uint64_t live = 0;
    uint32_t before = 0, order_before = 0; /* of the page before */
    for (uint64_t frame = e->frame; frame < end; frame++) {
        uint32_t *page = page_at(a, frame, false);
        const uint32_t holder = page ? *page : 0;
        const uint32_t order = holder ? a->rows.at[a->holders.at[holder - 1].row].order : 0;
        const bool begins = !(frame & ((UINT64_C(1) << order) - 1));
        if (before && (holder != before || begins))
            count_block(a, before, frame - 1, holder == before);
        if (holder) {
            *part = *part || order > e->order;
            release_page(a, page);
            live++;
        }
        before = holder;
        order_before = order;
    }
    if (before)
        count_block(a, before, end - 1, order_before <= e->order);
    return live;
}

static void add_allocation(struct page_account *r, const struct page_event *e)
{
    if (e->frame == PAGE_EVENT_NO_FRAME) {
        r->failures++;
        return;
    }
    r->allocations++;
    r->allocated_pages += UINT64_C(1) << e->order;
    r->gfp |= e->gfp;
}

static void allocate(struct page_accounts *a, const struct page_event *e, struct holder h)
{
    struct page_totals *t = &a->totals;
    bool ignored = false;
    const bool failed = e->frame == PAGE_EVENT_NO_FRAME;
    t->pages_without_free += failed ? 0 : release_block(a, e, &ignored);
    store_peak(a, &a->rows.at[h.row]);
    add_allocation(&a->rows.at[h.row], e);
    if (h.process_row != NO_ROW)
        add_allocation(&a->processes.at[h.process_row], e);
    if (failed) {
        t->failures++;
        return;
    }
    const uint32_t holder = number_of_holder(a, h);
    for (uint64_t i = 0; i < UINT64_C(1) << e->order; i++)
        *page_at(a, e->frame + i, true) = holder + 1;
    t->allocations++;
    t->allocated_pages += UINT64_C(1) << e->order;
    t->live_pages += UINT64_C(1) << e->order;
    t->other_pages += UINT64_C(1) << e->order;
    t->live_other_pages += UINT64_C(1) << e->order;
    t->peak_pages = t->live_pages > t->peak_pages ? t->live_pages : t->peak_pages;
}

static void free_here(struct page_account *r, uint64_t pages)
{
    r->frees_here++;
    r->freed_here_pages += pages;
}

static void free_block(struct page_accounts *a, const struct page_event *e, struct holder h)
{
    bool part = false;
    const uint64_t live = release_block(a, e, &part);
    a->totals.unmatched_pages += (UINT64_C(1) << e->order) - live;
    if (!live)
        return;
    a->totals.frees++;
    a->totals.freed_pages += live;
    a->totals.frees_in_parts += part;
    free_here(&a->rows.at[h.row], live);
    if (h.process_row != NO_ROW)
        free_here(&a->processes.at[h.process_row], live);
}

bool page_accounts_add(struct page_accounts *a, const struct page_event *e)
{
    const bool failed = e->kind == PAGE_EVENT_ALLOC && e->frame == PAGE_EVENT_NO_FRAME;
    if (e->order > ORDER_MAX || (e->frame >= FRAMES_MAX && !failed) ||
        (e->kind == PAGE_EVENT_FALLBACK && failed))
        return false;
    const struct holder h = rows_of(a, e, PAGE_USE_OTHER);
    a->totals.first_ns = a->totals.events ? a->totals.first_ns : e->time_ns;
    a->totals.events++;
    switch (e->kind) {
    case PAGE_EVENT_ALLOC:
        allocate(a, e, h);
        break;
    case PAGE_EVENT_FREE:
        free_block(a, e, h);
        break;
    default:
        a->rows.at[h.row].fallbacks++;
        if (h.process_row != NO_ROW)
            a->processes.at[h.process_row].fallbacks++;
        a->totals.fallbacks++;
    }
    a->totals.last_ns = e->time_ns;
    return true;
}

/* Sums of a file that may say anything must not wrap. */
#define HELD_MAX (UINT64_C(1) << 48)

static void hold(struct page_account *r, const struct page_event *e, uint64_t blocks)
{
    r->allocations += blocks;
    r->allocated_pages += blocks << e->order;
    r->gfp |= e->gfp;
}

bool page_accounts_hold(struct page_accounts *a, const struct page_event *e, enum page_use use,
                        uint64_t blocks)
{
    struct page_totals *t = &a->totals;
    if (e->order > ORDER_MAX || blocks > HELD_MAX >> e->order || t->live_pages > HELD_MAX)
        return false;
    const struct holder h = rows_of(a, e, use);
    const uint64_t pages = blocks << e->order;
    store_peak(a, &a->rows.at[h.row]);
    hold(&a->rows.at[h.row], e, blocks);
    if (h.process_row != NO_ROW)
        hold(&a->processes.at[h.process_row], e, blocks);
    t->events++;
    t->allocations += blocks;
    t->allocated_pages += pages;
    t->live_pages += pages;
    t->peak_pages = t->live_pages;
    t->slab_pages += use == PAGE_USE_SLAB ? pages : 0;
    t->live_slab_pages += use == PAGE_USE_SLAB ? pages : 0;
    t->other_pages += use == PAGE_USE_OTHER ? pages : 0;
    t->live_other_pages += use == PAGE_USE_OTHER ? pages : 0;
    return true;
}

static bool has_pages(const struct page_event *e)
{
    return e->order <= ORDER_MAX && e->frame < FRAMES_MAX;
}

void page_accounts_pass(struct page_accounts *a, const struct page_event *e)
{
    for (uint64_t i = 0; has_pages(e) && i < UINT64_C(1) << e->order; i++) {
        uint32_t *page = page_at(a, e->frame + i, false);
        if (page && *page) {
            a->totals.pages_without_free++;
            release_page(a, page);
        }
    }
}

bool page_accounts_has(struct page_accounts *a, const struct page_event *e)
{
    bool has = false;
    for (uint64_t i = 0; has_pages(e) && i < UINT64_C(1) << e->order && !has; i++) {
        const uint32_t *page = page_at(a, e->frame + i, false);
        has = page && *page;
    }
    return has;
}

/* ---- the pages under objects ---- */

void page_accounts_last(struct page_accounts *a, uint64_t frame, uint32_t order, uint32_t cpu)
{
    if (cpu >= KMEM_EVENT_CPUS_MAX)
        return;
    while (a->last.len <= cpu)
        *vec_push(&a->last) = (struct last){.tries = 0};
    a->last.at[cpu] = (struct last){frame, order, TRIES};
}

/* Is the object in the pages of the last allocation? That would fit only few beginnings of the mapping. */
static void vote(struct page_accounts *a, uint64_t address, uint32_t cpu)
{
    if (cpu >= a->last.len || !a->last.at[cpu].tries)
        return;
    const struct last l = a->last.at[cpu];
    const uint64_t block = address & ~((UINT64_C(1) << (PAGE_SHIFT + l.order)) - 1);
    const uint64_t begin = block - (l.frame << PAGE_SHIFT);
    a->last.at[cpu].tries--;
    if (begin % MAPPING_STEP)
        return;
    a->last.at[cpu].tries = 0; /* one block has one vote */
    a->votes = begin == a->candidate ? a->votes + 1 : 1;
    a->candidate = begin;
    if (a->votes >= VOTES_ENOUGH)
        a->mapping = begin;
}

/* Moves the pages of the block with this page to the row of the use. */
static void set_use(struct page_accounts *a, uint64_t frame, enum page_use use)
{
    const uint32_t *page = page_at(a, frame, false);
    if (!page || !*page)
        return;
    const uint32_t old = *page;
    const struct holder from = a->holders.at[old - 1];
    if (a->rows.at[from.row].use != PAGE_USE_OTHER)
        return;
    struct page_account like = a->rows.at[from.row];
    like.use = use;
    const struct holder to = {number_like(a, &like), from.process_row};
    const uint32_t number = number_of_holder(a, to) + 1;
    const uint64_t pages = UINT64_C(1) << like.order, first = frame & ~(pages - 1);
    uint64_t moved = 0;
    for (uint64_t i = 0; i < pages; i++) {
        uint32_t *one = page_at(a, first + i, false);
        if (one && *one == old) {
            *one = number;
            moved++;
        }
    }
    struct page_account *r = &a->rows.at[from.row], *s = &a->rows.at[to.row];
    store_peak(a, r);
    store_peak(a, s);
    r->allocations--;
    s->allocations++;
    r->allocated_pages -= pages;
    s->allocated_pages += pages;
    r->freed_pages -= pages - moved; /* parts of the block that were freed before */
    s->freed_pages += pages - moved;
    a->totals.slab_pages += use == PAGE_USE_SLAB ? pages : 0;
    a->totals.live_slab_pages += use == PAGE_USE_SLAB ? moved : 0;
    a->totals.other_pages -= pages;
    a->totals.live_other_pages -= moved;
}

void page_accounts_object(struct page_accounts *a, uint64_t address, bool is_large, uint32_t cpu)
{
    if (!a->mapping)
        vote(a, address, cpu);
    if (a->mapping && address >= a->mapping)
        set_use(a, (address - a->mapping) >> PAGE_SHIFT, is_large ? PAGE_USE_KMALLOC : PAGE_USE_SLAB);
}

/* ---- results ---- */

const struct page_totals *page_accounts_totals(const struct page_accounts *a)
{
    return &a->totals;
}

const struct page_account *page_accounts_rows(const struct page_accounts *a, size_t *n)
{
    *n = a->rows.len;
    return a->rows.at;
}

const struct page_account *page_accounts_processes(const struct page_accounts *a, size_t *n)
{
    *n = a->processes.len;
    return a->processes.at;
}

const char *page_accounts_text(const struct page_accounts *a, uint32_t text)
{
    return event_texts_text(&a->texts, text);
}

const uint64_t *page_accounts_stack(const struct page_accounts *a, uint32_t stack, uint32_t *depth)
{
    return event_texts_callers(&a->texts, stack, depth);
}
