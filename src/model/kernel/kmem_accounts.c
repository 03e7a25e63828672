/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/kernel/kmem_accounts.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash_map.h"
#include "base/vec.h"
#include "model/kernel/kmem_objects.h"

struct kmem_stack_range {
    size_t first;
    uint32_t depth;
};

struct row_key {
    uint64_t call_site, gfp;
    uint32_t cache, stack, comm, size_class;
};

struct pair_key {
    uint64_t call_site, free_site, cache;
};

/*
 * What was looked up lately, in slots by a quick hash. Most events are like one of the latest ones, and comparing with
 * these costs a fraction of a search in a map.
 */
#define RECENT_BITS 9
#define RECENT      (1u << RECENT_BITS)
struct recent {
    struct {
        struct row_key key;
        uint32_t number;
    } rows[RECENT];
    struct {
        struct pair_key key;
        uint32_t number;
    } pairs[RECENT];
    uint32_t texts[RECENT];
};

struct kmem_accounts {
    struct VEC(struct kmem_account) rows, processes;
    struct VEC(struct kmem_pair) pairs;
    struct VEC(char *) texts;                   /* names of caches and programs */
    struct VEC(struct kmem_stack_range) stacks; /* in `callers`; the first one is that of no stack */
    struct VEC(uint64_t) callers;
    struct map row_index, process_index, pair_index, text_index, stack_index;
    struct kmem_objects live;
    struct kmem_objects freed; /* with the object's cache for a row; without slots, unless they are kept */
    uint8_t nodes[KMEM_EVENT_CPUS_MAX]; /* by CPU */
    struct recent recent;
    uint32_t n_comms; /* different names of programs */
    struct kmem_totals totals;
    /*
     * Each row stores its live amounts at the peak, but only when it next changes: not all rows are visited at a peak.
     * `peak_number` grows when the sum first falls after a new peak. Before a row changes, it stores its live amounts
     * if its own peak_number is older.
     */
    uint64_t peak_number;
    bool at_peak;
};

#define FREED_MAX ((UINT32_C(1) << 22) - 1) /* in 256 MiB; later ones are not kept */

struct kmem_accounts *kmem_accounts_new(void)
{
    struct kmem_accounts *a = mem_alloc(sizeof(*a));
    kmem_objects_init(&a->live);
    memset(&a->recent, 0xff, sizeof(a->recent)); /* numbers that nothing has */
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
    kmem_objects_release(&a->live);
    kmem_objects_release(&a->freed);
    vec_release(&a->processes);
    vec_release(&a->pairs);
    map_release(&a->process_index);
    map_release(&a->pair_index);
    free(a);
}

/* ---- freed objects, if they are kept ---- */

void kmem_accounts_keep_freed(struct kmem_accounts *a)
{
    if (!a->freed.slots)
        kmem_objects_init(&a->freed);
}

static void keep_freed(struct kmem_accounts *a, uint64_t address, uint32_t cache)
{
    const struct kmem_object freed = {.address = address, .row = cache};
    struct kmem_object *o = a->freed.slots ? kmem_objects_find(&a->freed, address) : NULL;
    if (o && o->address)
        o->row = cache;
    else if (o && a->freed.n < FREED_MAX)
        kmem_objects_add(&a->freed, &freed);
}

static void forget_freed(struct kmem_accounts *a, uint64_t address)
{
    struct kmem_object *o = a->freed.slots ? kmem_objects_find(&a->freed, address) : NULL;
    if (o && o->address)
        kmem_objects_remove(&a->freed, o);
}

static void each(const struct kmem_objects *all, kmem_object_fn *f, void *arg)
{
    for (size_t i = 0; all->slots && i <= all->mask; i++)
        if (all->slots[i].address)
            f(arg, &all->slots[i]);
}

void kmem_accounts_each_live(const struct kmem_accounts *a, kmem_object_fn *f, void *arg)
{
    each(&a->live, f, arg);
}

void kmem_accounts_each_freed(const struct kmem_accounts *a, kmem_object_fn *f, void *arg)
{
    each(&a->freed, f, arg);
}

/* ---- rows ---- */

static size_t recent_slot(uint64_t one, uint64_t other)
{
    return (one * UINT64_C(0x9E3779B97F4A7C15) ^ other * UINT64_C(0xC2B2AE3D27D4EB4F)) >> (64 - RECENT_BITS);
}

static uint32_t number_of_text(struct kmem_accounts *a, const char *name)
{
    bool added;
    const size_t len = strlen(name);
    uint64_t head = len;
    memcpy(&head, name, len < sizeof(head) ? len : sizeof(head));
    uint32_t *recent = &a->recent.texts[recent_slot(head, len)];
    if (*recent < a->texts.len && !strcmp(a->texts.at[*recent], name))
        return *recent;
    size_t number = map_put(&a->text_index, name, len, a->texts.len, &added);
    if (added)
        *vec_push(&a->texts) = mem_strdup(name);
    *recent = (uint32_t)number;
    return *recent;
}

/* A program may give itself any number of names. From so many on, further ones are one; so are processes. */
#define COMMS_MAX     16384u
#define PROCESSES_MAX 262144u
#define OTHERS        "[other programs]"

static uint32_t number_of_comm(struct kmem_accounts *a, const char *comm)
{
    const char *name = comm ? comm : "";
    const size_t before = a->texts.len;
    if (a->n_comms >= COMMS_MAX && map_get(&a->text_index, name, strlen(name)) == MAP_NONE)
        name = OTHERS;
    const uint32_t number = number_of_text(a, name);
    a->n_comms += a->texts.len > before;
    return number;
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

/* `cache`: the number of the object's; `comm`: that of the program. */
static uint32_t number_of_row(struct kmem_accounts *a, const struct kmem_event *e, uint32_t cache,
                              uint32_t comm)
{
    const struct row_key key = {e->call_site,          e->gfp, cache,
                                number_of_stack(a, e), comm,   class_of(e->allocated_bytes)};
    const size_t slot =
        recent_slot(key.call_site ^ key.gfp, (uint64_t)key.comm << 32 | (key.cache ^ key.stack));
    bool added;
    if (a->recent.rows[slot].number < a->rows.len && !memcmp(&a->recent.rows[slot].key, &key, sizeof(key)))
        return a->recent.rows[slot].number;
    size_t number = map_put(&a->row_index, &key, sizeof(key), a->rows.len, &added);
    if (added)
        *vec_push(&a->rows) = (struct kmem_account){.call_site = key.call_site,
                                                    .gfp = key.gfp,
                                                    .cache = key.cache,
                                                    .stack = key.stack,
                                                    .comm = key.comm,
                                                    .size_class = (uint8_t)key.size_class,
                                                    .peak_number = a->peak_number};
    a->recent.rows[slot].key = key;
    a->recent.rows[slot].number = (uint32_t)number;
    return (uint32_t)number;
}

#define NO_ROW UINT32_MAX

static uint32_t number_of_process(struct kmem_accounts *a, const struct kmem_event *e, uint32_t comm)
{
    bool added;
    int32_t process = e->process;
    if (process == KMEM_EVENT_NO_PROCESS)
        return NO_ROW;
    if (a->processes.len >= PROCESSES_MAX &&
        map_get_u64(&a->process_index, (uint64_t)comm << 32 | (uint32_t)process) == MAP_NONE) {
        process = 0;
        comm = number_of_text(a, OTHERS);
    }
    size_t number =
        map_put_u64(&a->process_index, (uint64_t)comm << 32 | (uint32_t)process, a->processes.len, &added);
    if (added)
        *vec_push(&a->processes) = (struct kmem_account){
            .comm = comm, .cache = number_of_text(a, ""), .process = process, .peak_number = a->peak_number};
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

/* ---- events ---- */

static void add_to_row(const struct kmem_accounts *a, struct kmem_account *r, const struct kmem_event *e)
{
    store_peak(a, r);
    r->gfp |= e->gfp;
    r->allocations++;
    r->requested_bytes += e->requested_bytes;
    r->allocated_bytes += e->allocated_bytes;
}

static void take_from_row(const struct kmem_accounts *a, struct kmem_account *r, const struct kmem_object *o)
{
    store_peak(a, r);
    r->frees++;
    r->freed_bytes += o->allocated_bytes;
    r->freed_requested_bytes += o->requested_bytes;
}

static void release(struct kmem_accounts *a, struct kmem_object *o)
{
    leave_peak(a);
    take_from_row(a, &a->rows.at[o->row], o);
    if (o->process_row != NO_ROW)
        take_from_row(a, &a->processes.at[o->process_row], o);
    a->totals.live_objects--;
    a->totals.live_bytes -= o->allocated_bytes;
    a->totals.live_requested_bytes -= o->requested_bytes;
    kmem_objects_remove(&a->live, o);
}

static struct kmem_object object_of(struct kmem_accounts *a, const struct kmem_event *e)
{
    const uint64_t born_us = (e->time_ns - a->totals.first_ns) / 1000;
    const uint32_t comm = number_of_comm(a, e->comm);
    return (struct kmem_object){
        .address = e->address,
        .born_us = born_us < KMEM_OBJECT_BORN_MAX ? born_us : KMEM_OBJECT_BORN_MAX,
        .cpu = e->cpu < KMEM_EVENT_CPUS_MAX ? e->cpu : KMEM_EVENT_CPUS_MAX - 1,
        .requested_bytes = (uint32_t)e->requested_bytes,
        .allocated_bytes = (uint32_t)e->allocated_bytes,
        .row = number_of_row(a, e, number_of_text(a, e->cache), comm),
        .process_row = number_of_process(a, e, comm),
    };
}

static void allocate(struct kmem_accounts *a, const struct kmem_event *e)
{
    struct kmem_totals *t = &a->totals;
    struct kmem_object *before = kmem_objects_find(&a->live, e->address);
    if (before->address) {
        t->frees_without_event++;
        release(a, before);
    }
    forget_freed(a, e->address);
    const struct kmem_object o = object_of(a, e);
    add_to_row(a, &a->rows.at[o.row], e);
    if (o.process_row != NO_ROW)
        add_to_row(a, &a->processes.at[o.process_row], e);
    kmem_objects_add(&a->live, &o);
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

/* An object of the row is freed by the event. */
static void add_pair(struct kmem_accounts *a, const struct kmem_event *e, const struct kmem_object *o)
{
    const struct kmem_account *r = &a->rows.at[o->row];
    const struct pair_key key = {r->call_site, e->call_site, r->cache};
    const size_t slot = recent_slot(key.call_site, key.free_site ^ key.cache);
    const uint32_t cpu = e->cpu < KMEM_EVENT_CPUS_MAX ? e->cpu : KMEM_EVENT_CPUS_MAX - 1;
    uint32_t number = a->recent.pairs[slot].number;
    if (number >= a->pairs.len || memcmp(&a->recent.pairs[slot].key, &key, sizeof(key)) != 0) {
        bool added;
        number = (uint32_t)map_put(&a->pair_index, &key, sizeof(key), a->pairs.len, &added);
        if (added)
            *vec_push(&a->pairs) = (struct kmem_pair){key.call_site, key.free_site, r->cache};
        a->recent.pairs[slot].key = key;
        a->recent.pairs[slot].number = number;
    }
    struct kmem_pair *p = &a->pairs.at[number];
    const bool cross_cpu = o->cpu != cpu, cross_node = a->nodes[o->cpu] != a->nodes[cpu];
    p->frees++;
    p->freed_bytes += o->allocated_bytes;
    p->cross_cpu_frees += cross_cpu;
    p->cross_node_frees += cross_node;
    a->totals.cross_cpu_frees += cross_cpu;
    a->totals.cross_node_frees += cross_node;
}

static void free_here(struct kmem_account *r, const struct kmem_object *o)
{
    r->frees_here++;
    r->freed_here_bytes += o->allocated_bytes;
}

static void release_by_event(struct kmem_accounts *a, const struct kmem_event *e)
{
    struct kmem_object *o = kmem_objects_find(&a->live, e->address);
    if (!o->address) {
        a->totals.unmatched_frees++;
        if (*e->cache)
            keep_freed(a, e->address, number_of_text(a, e->cache));
        return;
    }
    const uint32_t cache = *e->cache ? number_of_text(a, e->cache) : a->rows.at[o->row].cache;
    const uint32_t comm = number_of_comm(a, e->comm);
    const uint32_t row = number_of_row(a, e, cache, comm), process = number_of_process(a, e, comm);
    free_here(&a->rows.at[row], o);
    uint32_t *learned = &a->rows.at[o->row].freed_cache;
    if (*e->cache)
        *learned = !*learned || *learned == cache + 1 ? cache + 1 : KMEM_CACHES;
    if (process != NO_ROW)
        free_here(&a->processes.at[process], o);
    add_pair(a, e, o);
    a->totals.frees++;
    a->totals.freed_bytes += o->allocated_bytes;
    keep_freed(a, o->address, cache);
    release(a, o);
}

void kmem_accounts_set_node(struct kmem_accounts *a, uint32_t cpu, uint32_t node)
{
    if (cpu < KMEM_EVENT_CPUS_MAX)
        a->nodes[cpu] = (uint8_t)node;
}

bool kmem_accounts_add(struct kmem_accounts *a, const struct kmem_event *e)
{
    struct kmem_totals *t = &a->totals;
    if (e->kind == KMEM_EVENT_ALLOC && e->address > KMEM_EVENT_NO_OBJECT &&
        (e->allocated_bytes > UINT32_MAX || e->requested_bytes > e->allocated_bytes))
        return false;
    t->first_ns = t->events ? t->first_ns : e->time_ns;
    t->last_ns = e->time_ns;
    t->events++;
    if (e->address <= KMEM_EVENT_NO_OBJECT)
        ++*(e->kind == KMEM_EVENT_ALLOC ? &t->no_allocations : &t->null_frees);
    else if (e->kind == KMEM_EVENT_ALLOC)
        allocate(a, e);
    else
        release_by_event(a, e);
    return true;
}

/* ---- results ---- */

static void age(struct kmem_account *r, uint64_t age_ns)
{
    r->oldest_ns = age_ns > r->oldest_ns ? age_ns : r->oldest_ns;
}

void kmem_accounts_update_ages(struct kmem_accounts *a)
{
    const uint64_t lasted_ns = a->totals.last_ns - a->totals.first_ns;
    vec_each (struct kmem_account, r, &a->rows)
        r->oldest_ns = 0;
    vec_each (struct kmem_account, p, &a->processes)
        p->oldest_ns = 0;
    for (size_t i = 0; i <= a->live.mask; i++) {
        const struct kmem_object *o = &a->live.slots[i];
        const uint64_t born_ns = o->born_us * 1000, age_ns = lasted_ns > born_ns ? lasted_ns - born_ns : 0;
        if (o->address)
            age(&a->rows.at[o->row], age_ns);
        if (o->address && o->process_row != NO_ROW)
            age(&a->processes.at[o->process_row], age_ns);
    }
}

bool kmem_accounts_is_live(const struct kmem_accounts *a, uint64_t address)
{
    return address && kmem_objects_find(&a->live, address)->address;
}

void kmem_accounts_restart_peak(struct kmem_accounts *a)
{
    a->totals.peak_bytes = a->totals.live_bytes;
    a->totals.peak_ns = a->totals.last_ns;
    a->at_peak = true;
}

void kmem_accounts_update_peak(struct kmem_accounts *a)
{
    leave_peak(a);
    vec_each (struct kmem_account, r, &a->rows)
        store_peak(a, r);
    vec_each (struct kmem_account, p, &a->processes)
        store_peak(a, p);
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

const struct kmem_account *kmem_accounts_processes(const struct kmem_accounts *a, size_t *n)
{
    *n = a->processes.len;
    return a->processes.at;
}

const struct kmem_pair *kmem_accounts_pairs(const struct kmem_accounts *a, size_t *n)
{
    *n = a->pairs.len;
    return a->pairs.at;
}

const char *kmem_accounts_text(const struct kmem_accounts *a, uint32_t text)
{
    return a->texts.at[text];
}

size_t kmem_accounts_texts(const struct kmem_accounts *a)
{
    return a->texts.len;
}

const uint64_t *kmem_accounts_stack(const struct kmem_accounts *a, uint32_t stack, uint32_t *depth)
{
    const struct kmem_stack_range *range = &a->stacks.at[stack];
    *depth = range->depth;
    return range->depth ? a->callers.at + range->first : NULL;
}
