/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/kernel/kmem_accounts.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash_map.h"
#include "base/vec.h"

/* An object that is live. A slot with the address 0 is empty. */
struct object {
    uint64_t address, requested_bytes, allocated_bytes;
    uint32_t row;
};

/* Open addressing, at most half full. Removing moves later objects back, so that no slot marks a removed one. */
struct objects {
    struct object *slots;
    size_t n, mask;
};

struct kmem_stack_range {
    size_t first;
    uint32_t depth;
};

struct kmem_accounts {
    struct VEC(struct kmem_account) rows;
    struct VEC(char *) texts;                   /* names of caches and programs */
    struct VEC(struct kmem_stack_range) stacks; /* in `callers`; the first one is that of no stack */
    struct VEC(uint64_t) callers;
    struct map row_index, text_index, stack_index;
    struct objects live;
    struct kmem_totals totals;
    /*
     * Each row stores its live amounts at the peak, but only when it next changes: not all rows are visited at a peak.
     * `peak_number` grows when the sum first falls after a new peak. Before a row changes, it stores its live amounts
     * if its own peak_number is older.
     */
    uint64_t peak_number;
    bool at_peak;
};

#define OBJECTS_FIRST 4096u

struct kmem_accounts *kmem_accounts_new(void)
{
    struct kmem_accounts *a = mem_alloc(sizeof(*a));
    a->live = (struct objects){.slots = mem_array(OBJECTS_FIRST, sizeof(*a->live.slots)),
                               .mask = OBJECTS_FIRST - 1};
    *vec_push(&a->stacks) = (struct kmem_stack_range){0, 0};
    return a;
}

void kmem_accounts_free(struct kmem_accounts *a)
{
    if (!a)
        return;
    vec_each (char *, text, &a->texts)
        free(*text);
    vec_release(&a->texts);
    vec_release(&a->rows);
    map_release(&a->row_index);
    map_release(&a->text_index);
    map_release(&a->stack_index);
    vec_release(&a->stacks);
    vec_release(&a->callers);
    free(a->live.slots);
    free(a);
}

/* ---- live objects ---- */

static size_t home_of(const struct objects *o, uint64_t address)
{
    return (size_t)((address * UINT64_C(0x9E3779B97F4A7C15)) >> 20) & o->mask;
}

/* Returns the object's slot, or the empty one where it belongs. */
static struct object *find_slot(const struct objects *o, uint64_t address)
{
    size_t at = home_of(o, address);
    while (o->slots[at].address && o->slots[at].address != address)
        at = (at + 1) & o->mask;
    return &o->slots[at];
}

static void grow(struct objects *o)
{
    struct objects old = *o;
    o->mask = 2 * old.mask + 1;
    o->slots = mem_array(o->mask + 1, sizeof(*o->slots));
    for (size_t i = 0; i <= old.mask; i++)
        if (old.slots[i].address)
            *find_slot(o, old.slots[i].address) = old.slots[i];
    free(old.slots);
}

static void remove_slot(struct objects *o, struct object *slot)
{
    size_t hole = (size_t)(slot - o->slots);
    for (size_t at = hole;;) {
        at = (at + 1) & o->mask;
        if (!o->slots[at].address)
            break;
        size_t home = home_of(o, o->slots[at].address);
        if (((at - home) & o->mask) < ((at - hole) & o->mask)) /* its home is behind the hole */
            continue;
        o->slots[hole] = o->slots[at];
        hole = at;
    }
    o->slots[hole].address = 0;
    o->n--;
}

/* ---- rows ---- */

static uint32_t number_of_text(struct kmem_accounts *a, const char *name)
{
    bool added;
    size_t number = map_put(&a->text_index, name, strlen(name), a->texts.len, &added);
    if (added)
        *vec_push(&a->texts) = mem_strdup(name);
    return (uint32_t)number;
}

static uint32_t number_of_stack(struct kmem_accounts *a, const struct kmem_event *e)
{
    bool added;
    if (!e->stack || !e->depth)
        return 0;
    size_t number = map_put(&a->stack_index, e->stack, e->depth * sizeof(*e->stack), a->stacks.len, &added);
    if (added) {
        *vec_push(&a->stacks) = (struct kmem_stack_range){a->callers.len, e->depth};
        for (uint32_t i = 0; i < e->depth; i++)
            *vec_push(&a->callers) = e->stack[i];
    }
    return (uint32_t)number;
}

static uint8_t class_of(uint64_t bytes)
{
    return bytes ? (uint8_t)(63 - __builtin_clzll(bytes)) : 0;
}

/* `cache`: the number of the object's. */
static uint32_t number_of_row(struct kmem_accounts *a, const struct kmem_event *e, uint32_t cache)
{
    const struct {
        uint64_t call_site;
        uint32_t cache, stack, comm, size_class;
    } key = {e->call_site, cache, number_of_stack(a, e), number_of_text(a, e->comm ? e->comm : ""),
             class_of(e->allocated_bytes)};
    bool added;
    size_t number = map_put(&a->row_index, &key, sizeof(key), a->rows.len, &added);
    if (added)
        *vec_push(&a->rows) = (struct kmem_account){.call_site = key.call_site,
                                                    .cache = key.cache,
                                                    .stack = key.stack,
                                                    .comm = key.comm,
                                                    .size_class = (uint8_t)key.size_class,
                                                    .peak_number = a->peak_number};
    return (uint32_t)number;
}

static void store_peak(const struct kmem_accounts *a, struct kmem_account *r)
{
    if (r->peak_number == a->peak_number)
        return;
    r->peak_number = a->peak_number;
    r->at_peak_objects = r->allocations - r->frees;
    r->at_peak_bytes = r->allocated_bytes - r->freed_bytes;
    r->at_peak_requested_bytes = r->requested_bytes - r->freed_requested_bytes;
}

static void leave_peak(struct kmem_accounts *a)
{
    a->peak_number += a->at_peak;
    a->at_peak = false;
}

static void release(struct kmem_accounts *a, struct object *o)
{
    struct kmem_account *r = &a->rows.at[o->row];
    leave_peak(a);
    store_peak(a, r);
    r->frees++;
    r->freed_bytes += o->allocated_bytes;
    r->freed_requested_bytes += o->requested_bytes;
    a->totals.live_objects--;
    a->totals.live_bytes -= o->allocated_bytes;
    a->totals.live_requested_bytes -= o->requested_bytes;
    remove_slot(&a->live, o);
}

static void allocate(struct kmem_accounts *a, const struct kmem_event *e)
{
    struct kmem_totals *t = &a->totals;
    struct object *before = find_slot(&a->live, e->address);
    if (before->address) {
        t->frees_without_event++;
        release(a, before);
    }
    if (2 * (a->live.n + 1) > a->live.mask)
        grow(&a->live);
    const uint32_t row = number_of_row(a, e, number_of_text(a, e->cache));
    struct kmem_account *r = &a->rows.at[row];
    store_peak(a, r);
    r->gfp |= e->gfp;
    r->allocations++;
    r->requested_bytes += e->requested_bytes;
    r->allocated_bytes += e->allocated_bytes;
    *find_slot(&a->live, e->address) =
        (struct object){e->address, e->requested_bytes, e->allocated_bytes, row};
    a->live.n++;
    t->allocations++;
    t->requested_bytes += e->requested_bytes;
    t->allocated_bytes += e->allocated_bytes;
    t->live_objects++;
    t->live_bytes += e->allocated_bytes;
    t->live_requested_bytes += e->requested_bytes;
    if (t->live_bytes > t->peak_bytes) {
        t->peak_bytes = t->live_bytes;
        t->peak_ns = e->time_ns;
        a->at_peak = true;
    }
}

static void release_by_event(struct kmem_accounts *a, const struct kmem_event *e)
{
    struct object *o = find_slot(&a->live, e->address);
    if (!o->address) {
        a->totals.unmatched_frees++;
        return;
    }
    const uint32_t cache = *e->cache ? number_of_text(a, e->cache) : a->rows.at[o->row].cache;
    const uint32_t row = number_of_row(a, e, cache); /* may move all rows */
    struct kmem_account *here = &a->rows.at[row];
    here->frees_here++;
    here->freed_here_bytes += o->allocated_bytes;
    a->totals.frees++;
    a->totals.freed_bytes += o->allocated_bytes;
    release(a, o);
}

void kmem_accounts_add(struct kmem_accounts *a, const struct kmem_event *e)
{
    struct kmem_totals *t = &a->totals;
    t->first_ns = t->events ? t->first_ns : e->time_ns;
    t->last_ns = e->time_ns;
    t->events++;
    if (e->address > KMEM_EVENT_NO_OBJECT) {
        if (e->kind == KMEM_EVENT_ALLOC)
            allocate(a, e);
        else
            release_by_event(a, e);
    } else if (e->kind == KMEM_EVENT_ALLOC) {
        t->no_allocations++;
    } else {
        t->null_frees++;
    }
}

void kmem_accounts_update_peak(struct kmem_accounts *a)
{
    leave_peak(a);
    vec_each (struct kmem_account, r, &a->rows)
        store_peak(a, r);
}

const struct kmem_totals *kmem_accounts_totals(const struct kmem_accounts *a)
{
    return &a->totals;
}

const struct kmem_account *kmem_accounts_rows(const struct kmem_accounts *a, size_t *n)
{
    *n = a->rows.len;
    return a->rows.at;
}

const char *kmem_accounts_text(const struct kmem_accounts *a, uint32_t text)
{
    return a->texts.at[text];
}

const uint64_t *kmem_accounts_stack(const struct kmem_accounts *a, uint32_t stack, uint32_t *depth)
{
    const struct kmem_stack_range *range = &a->stacks.at[stack];
    *depth = range->depth;
    return range->depth ? a->callers.at + range->first : NULL;
}
