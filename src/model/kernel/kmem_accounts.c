/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/kernel/kmem_accounts.h"

#include <stdlib.h>
#include <string.h>

#include "model/kernel/kmem_accounts_parts.h"

/* kmalloc() takes whole pages for more than two of them. No kernel has smaller pages than these. */
#define LARGE_BYTES 8192u

#define FREED_MAX ((UINT32_C(1) << 22) - 1) /* in 256 MiB; later ones are not kept */

struct kmem_accounts *kmem_accounts_new(void)
{
    struct kmem_accounts *a = mem_alloc(sizeof(*a));
    kmem_objects_init(&a->live);
    memset(&a->recent, 0xff, sizeof(a->recent)); /* numbers that nothing has */
    event_texts_init(&a->texts);
    seen_addresses_init(&a->seen);
    a->end_ns = UINT64_MAX;
    return a;
}

void kmem_accounts_free(struct kmem_accounts *a)
{
    if (!a)
        return;
    event_texts_release(&a->texts);
    seen_addresses_release(&a->seen);
    vec_release(&a->rows);
    map_release(&a->row_index);
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
    if (!a->freed.table.slots)
        kmem_objects_init(&a->freed);
}

static void keep_freed(struct kmem_accounts *a, uint64_t address, uint32_t cache)
{
    const struct kmem_object freed = {.address = address, .row = cache};
    if (a->freed.table.slots)
        kmem_objects_put(&a->freed, &freed, FREED_MAX);
}

static void forget_freed(struct kmem_accounts *a, uint64_t address)
{
    struct kmem_object *o = a->freed.table.slots ? kmem_objects_find(&a->freed, address) : NULL;
    if (o && o->address)
        kmem_objects_remove(&a->freed, o);
}

void kmem_accounts_each_live(const struct kmem_accounts *a, kmem_object_fn *f, void *arg)
{
    kmem_objects_each(&a->live, f, arg);
}

void kmem_accounts_each_freed(const struct kmem_accounts *a, kmem_object_fn *f, void *arg)
{
    kmem_objects_each(&a->freed, f, arg);
}

/* ---- rows ---- */

static size_t recent_slot(uint64_t one, uint64_t other)
{
    return event_texts_slot(one, other, RECENT_BITS);
}

/* From so many processes on, further ones are one, as names of programs are. */
#define PROCESSES_MAX 262144u

static uint8_t class_of(uint64_t bytes)
{
    return bytes ? (uint8_t)(63 - __builtin_clzll(bytes)) : 0;
}

/* `cache`: the number of the object's; `comm`: that of the program. */
static uint32_t number_of_row(struct kmem_accounts *a, const struct kmem_event *e, uint32_t cache,
                              uint32_t comm)
{
    const uint32_t stack = event_texts_stack(&a->texts, e->stack, e->depth);
    const struct row_key key = {e->call_site, e->gfp, cache, stack, comm, class_of(e->allocated_bytes)};
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

static uint32_t number_of_process(struct kmem_accounts *a, const struct kmem_event *e, uint32_t comm)
{
    bool added;
    int32_t process = e->process;
    if (process == KMEM_EVENT_NO_PROCESS)
        return NO_ROW;
    if (a->processes.len >= PROCESSES_MAX &&
        map_get_u64(&a->process_index, (uint64_t)comm << 32 | (uint32_t)process) == MAP_NONE) {
        process = 0;
        comm = event_texts_number(&a->texts, EVENT_TEXTS_OTHERS);
    }
    size_t number =
        map_put_u64(&a->process_index, (uint64_t)comm << 32 | (uint32_t)process, a->processes.len, &added);
    if (added)
        *vec_push(&a->processes) = (struct kmem_account){.comm = comm,
                                                         .cache = event_texts_number(&a->texts, ""),
                                                         .process = process,
                                                         .peak_number = a->peak_number};
    return (uint32_t)number;
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
    const uint32_t comm = event_texts_comm(&a->texts, e->comm);
    return (struct kmem_object){
        .address = e->address,
        .born_us = born_us < KMEM_OBJECT_BORN_MAX ? born_us : KMEM_OBJECT_BORN_MAX,
        .cpu = e->cpu < KMEM_EVENT_CPUS_MAX ? e->cpu : KMEM_EVENT_CPUS_MAX - 1,
        .requested_bytes = (uint32_t)e->requested_bytes,
        .allocated_bytes = (uint32_t)e->allocated_bytes,
        .row = number_of_row(a, e, event_texts_number(&a->texts, e->cache), comm),
        .process_row = number_of_process(a, e, comm),
    };
}

void kmem_accounts_pass(struct kmem_accounts *a, uint64_t address)
{
    struct kmem_object *before = address ? kmem_objects_find(&a->live, address) : NULL;
    if (!before || !before->address)
        return;
    a->totals.frees_without_event++;
    release(a, before);
}

static void allocate(struct kmem_accounts *a, const struct kmem_event *e)
{
    struct kmem_totals *t = &a->totals;
    kmem_accounts_pass(a, e->address);
    forget_freed(a, e->address);
    seen_addresses_add(&a->seen, e->address);
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

/* ---- large objects, which the kernel reports twice ---- */

/*
 * Whether the latest event of this thread on this CPU was of a large object at the address. The event that is given is
 * the latest from now on.
 */
static bool follows_large(struct kmem_accounts *a, const struct kmem_event *e)
{
    struct large_allocation *l = &a->large[e->cpu % LARGE_CPUS];
    if (!l->address || l->cpu != e->cpu || l->pid != e->pid || l->context != e->context)
        return false;
    const uint64_t address = l->address;
    l->address = 0;
    return address == e->address && e->kind == KMEM_EVENT_ALLOC;
}

static void note_large(struct kmem_accounts *a, const struct kmem_event *e)
{
    if (e->is_kmalloc && e->allocated_bytes > LARGE_BYTES)
        a->large[e->cpu % LARGE_CPUS] =
            (struct large_allocation){e->address, e->pid, e->cpu, e->context, a->peak_number};
}

/* The event tells of this object as the one before did, but of another call. */
static bool is_same_object(const struct kmem_accounts *a, const struct kmem_event *e,
                           const struct kmem_object *o)
{
    const struct kmem_account *r = &a->rows.at[o->row];
    return o->address && o->requested_bytes == e->requested_bytes &&
           o->allocated_bytes == e->allocated_bytes && r->gfp == e->gfp &&
           (r->call_site != e->call_site || e->is_own);
}

/* What an interrupt freed between both events ended a peak, at which the object was live. */
static void move_at_peak(struct kmem_account *from, struct kmem_account *to, const struct kmem_object *o)
{
    from->at_peak_objects--;
    from->at_peak_bytes -= o->allocated_bytes;
    from->at_peak_requested_bytes -= o->requested_bytes;
    to->at_peak_objects++;
    to->at_peak_bytes += o->allocated_bytes;
    to->at_peak_requested_bytes += o->requested_bytes;
}

/* Moves the object to the row of the call that the event names. The sums of all rows stay, and so does the peak. */
static void charge_again(struct kmem_accounts *a, const struct kmem_event *e, struct kmem_object *o)
{
    const uint32_t number =
        number_of_row(a, e, event_texts_number(&a->texts, e->cache), event_texts_comm(&a->texts, e->comm));
    struct kmem_account *before = &a->rows.at[o->row], *now = &a->rows.at[number];
    store_peak(a, before);
    before->allocations--;
    before->requested_bytes -= o->requested_bytes;
    before->allocated_bytes -= o->allocated_bytes;
    add_to_row(a, now, e);
    if (a->large[e->cpu % LARGE_CPUS].peak_number != a->peak_number)
        move_at_peak(before, now, o);
    o->row = number;
}

static void allocate_or_repeat(struct kmem_accounts *a, const struct kmem_event *e, bool is_after_large)
{
    struct kmem_object *o = is_after_large ? kmem_objects_find(&a->live, e->address) : NULL;
    if (o && is_same_object(a, e, o)) {
        charge_again(a, e, o);
        return;
    }
    allocate(a, e);
    note_large(a, e);
}

/* ---- frees ---- */

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

static void add_unmatched(struct kmem_accounts *a, const struct kmem_event *e)
{
    const bool had_another = seen_addresses_add(&a->seen, e->address);
    a->totals.unmatched_frees++;
    if (a->has_losses)
        a->totals.frees_after_loss++;
    else if (had_another)
        a->totals.unexplained_frees++;
    else
        a->totals.older_frees++;
    if (*e->cache)
        keep_freed(a, e->address, event_texts_number(&a->texts, e->cache));
}

static void release_by_event(struct kmem_accounts *a, const struct kmem_event *e)
{
    struct kmem_object *o = kmem_objects_find(&a->live, e->address);
    if (!o->address) {
        add_unmatched(a, e);
        return;
    }
    const uint32_t cache = *e->cache ? event_texts_number(&a->texts, e->cache) : a->rows.at[o->row].cache;
    const uint32_t comm = event_texts_comm(&a->texts, e->comm);
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

void kmem_accounts_lose(struct kmem_accounts *a, bool anywhere)
{
    struct kmem_totals *t = &a->totals;
    a->has_losses = true;
    if (anywhere) {
        t->frees_after_loss = t->unmatched_frees;
        t->older_frees = t->unexplained_frees = 0;
    }
}

/* ---- after the end ---- */

void kmem_accounts_end_at(struct kmem_accounts *a, uint64_t end_ns, uint64_t settle_ns)
{
    a->end_ns = end_ns;
    a->settle_ns = settle_ns;
}

static void settle_in_row(struct kmem_account *r, const struct kmem_object *o)
{
    r->settled_objects++;
    r->settled_bytes += o->allocated_bytes;
}

/* An object is gone, too, if its address is allocated again. */
static void settle(struct kmem_accounts *a, const struct kmem_event *e)
{
    struct kmem_object *o = e->address ? kmem_objects_find(&a->live, e->address) : NULL;
    if (!o || !o->address || o->settled || e->time_ns - a->end_ns > a->settle_ns)
        return;
    o->settled = 1;
    settle_in_row(&a->rows.at[o->row], o);
    if (o->process_row != NO_ROW)
        settle_in_row(&a->processes.at[o->process_row], o);
    a->totals.settled_objects++;
    a->totals.settled_bytes += o->allocated_bytes;
}

bool kmem_accounts_add(struct kmem_accounts *a, const struct kmem_event *e)
{
    struct kmem_totals *t = &a->totals;
    if (e->kind == KMEM_EVENT_ALLOC && e->address > KMEM_EVENT_NO_OBJECT &&
        (e->allocated_bytes > UINT32_MAX || e->requested_bytes > e->allocated_bytes))
        return false;
    if (e->time_ns > a->end_ns) {
        settle(a, e);
        return true;
    }
    t->first_ns = t->events ? t->first_ns : e->time_ns;
    t->last_ns = e->time_ns;
    t->events++;
    const bool is_after_large = follows_large(a, e);
    if (e->address <= KMEM_EVENT_NO_OBJECT)
        ++*(e->kind == KMEM_EVENT_ALLOC ? &t->no_allocations : &t->null_frees);
    else if (e->kind == KMEM_EVENT_ALLOC)
        allocate_or_repeat(a, e, is_after_large);
    else
        release_by_event(a, e);
    return true;
}

bool kmem_accounts_is_live(const struct kmem_accounts *a, uint64_t address)
{
    return address && kmem_objects_find(&a->live, address)->address;
}

/* Sums of several files, each of which may say anything, must not wrap. */
#define HELD_MAX (UINT64_C(1) << 56)

bool kmem_accounts_hold(struct kmem_accounts *a, const struct kmem_held *h)
{
    struct kmem_totals *t = &a->totals;
    const struct kmem_event one = {.call_site = h->call_site,
                                   .allocated_bytes = h->objects ? h->bytes / h->objects : h->bytes,
                                   .stack = h->stack,
                                   .depth = h->depth};
    if (h->requested_bytes > h->bytes || h->bytes > HELD_MAX - t->live_bytes ||
        h->objects > HELD_MAX - t->live_objects)
        return false;
    const uint32_t row =
        number_of_row(a, &one, event_texts_number(&a->texts, h->cache), event_texts_number(&a->texts, ""));
    struct kmem_account *r = &a->rows.at[row];
    leave_peak(a);
    store_peak(a, r);
    r->allocations += h->objects;
    r->requested_bytes += h->requested_bytes;
    r->allocated_bytes += h->bytes;
    r->held_ns = h->oldest_ns > r->held_ns ? h->oldest_ns : r->held_ns;
    r->no_bytes |= h->no_bytes;
    t->events++;
    t->allocations += h->objects;
    t->requested_bytes += h->requested_bytes;
    t->allocated_bytes += h->bytes;
    t->live_objects += h->objects;
    t->live_bytes += h->bytes;
    t->live_requested_bytes += h->requested_bytes;
    kmem_accounts_restart_peak(a);
    return true;
}
