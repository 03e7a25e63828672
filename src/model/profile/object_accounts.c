/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/profile/object_accounts.h"

#include <stdlib.h>
#include <string.h>

#include "base/address_table.h"
#include "base/hash_map.h"
#include "base/mem.h"
#include "model/trace/early_frees.h"

#define FREES_MAX    1024u /* kept for each image: the last ones */
#define RECENT_CELLS 8192u
#define THREAD_BITS  26
#define CLASS_BITS   6
#define OLDER        UINT32_MAX /* the cell of an object from before the span */

struct object {
    uint64_t address, serial, born_ns, size_bytes;
    uint32_t cell;
};
#define BYTES sizeof(struct object)

struct sums {
    uint64_t objects, bytes;
};

struct cell {
    uint32_t image, stack, thread;
    uint32_t size_class;
    struct sums allocated, freed, temporary;
    struct sums at_peak;
    uint64_t peak_number; /* of the image, when at_peak was last right */
    uint32_t lifetimes[PROFILE_LIFETIMES];
};

struct image {
    struct address_table live;
    uint64_t serials, frees, early_frees;
    uint64_t live_bytes, allocated_bytes, peak_bytes, peak_ns;
    uint64_t peak_number; /* grows each time that the peak does */
    struct profile_free *recent_frees;
    size_t next_point; /* in the profile: the first one that is not filled in; of this image, or the end */
};

struct thread {
    uint64_t last_serial; /* of the object that it allocated last */
    struct object moving; /* by realloc(); address 0: none */
    uint64_t moving_ns;
};

struct object_accounts {
    struct profile *p;
    struct VEC(struct image) images;
    struct VEC(struct thread) threads;
    struct VEC(struct cell) cells;
    struct map cell_numbers;
    struct object_calls *calls; /* NULL: they are not counted */
    struct profile_older_frees older;
    uint64_t span_ns;                       /* when it began */
    struct early_frees *early;              /* NULL: frees follow their allocations */
    const struct object_listener *listener; /* NULL: there is none */
    struct {
        uint64_t key;
        uint32_t number;
    } recent[RECENT_CELLS];
};

struct object_accounts *object_accounts_new(struct profile *p)
{
    struct object_accounts *a = mem_alloc(sizeof(*a));
    a->p = p;
    p->cells.len = p->samples.len = p->frees.len = p->moments.len = p->moment_cells.len = 0;
    vec_each (struct profile_image, i, &p->images) {
        memset(i->losses, 0, sizeof(i->losses));
        i->peak_ns = i->torn_samples = i->cold_ns = i->operations_begun = i->operations_done = i->off_ns = 0;
        i->peak_bytes = 0;
        i->past = i->inconsistent = false;
    }
    return a;
}

void object_accounts_free(struct object_accounts *a)
{
    if (!a)
        return;
    vec_each (struct image, i, &a->images) {
        address_table_release(&i->live);
        free(i->recent_frees);
    }
    free(a->early);
    vec_release(&a->images);
    vec_release(&a->threads);
    vec_release(&a->cells);
    map_release(&a->cell_numbers);
    free(a);
}

void object_accounts_count_calls(struct object_accounts *a, struct object_calls *calls)
{
    a->calls = calls;
}

void object_accounts_listen(struct object_accounts *a, const struct object_listener *listener)
{
    a->listener = listener;
}

static void tell(const struct object_accounts *a, const struct object *o, uint64_t time_ns, bool is_end)
{
    if (a->listener)
        a->listener->hear(a->listener->arg, &(struct object_life){o->cell, o->size_bytes, time_ns, is_end});
}

void object_calls_release(struct object_calls *calls)
{
    vec_release(&calls->all);
    map_release(&calls->by_place);
}

static struct object_call *call_of(struct object_calls *calls, uint32_t image, uint32_t location)
{
    const uint64_t key = (uint64_t)image << 32 | location;
    bool added;
    const size_t number = map_put_u64(&calls->by_place, key, calls->all.len, &added);
    if (added)
        *vec_push(&calls->all) = (struct object_call){.image = image, .location = location};
    return &calls->all.at[number];
}

static size_t point_of(const struct profile *p, uint32_t image, size_t at)
{
    while (at < p->points.len && p->points.at[at].image != image)
        at++;
    return at;
}

static struct image *image_of(struct object_accounts *a, uint32_t image)
{
    while (a->images.len <= image) {
        struct image *i = vec_push(&a->images);
        address_table_init(&i->live, BYTES);
        i->next_point = point_of(a->p, (uint32_t)a->images.len - 1, 0);
    }
    return &a->images.at[image];
}

static struct thread *thread_of(struct object_accounts *a, uint32_t thread)
{
    while (a->threads.len <= thread)
        vec_push(&a->threads);
    return &a->threads.at[thread];
}

/* Sets the points up to this time: nothing has changed since the event before. */
static void pass_points(struct object_accounts *a, struct image *i, uint32_t image, uint64_t time_ns)
{
    while (i->next_point < a->p->points.len && a->p->points.at[i->next_point].time_ns < time_ns) {
        struct profile_point *point = &a->p->points.at[i->next_point];
        point->live_bytes = (double)i->live_bytes;
        point->allocated_bytes = (double)i->allocated_bytes;
        i->next_point = point_of(a->p, image, i->next_point + 1);
    }
}

static uint32_t size_class(uint64_t size_bytes)
{
    return size_bytes ? 63 - (uint32_t)__builtin_clzll(size_bytes) : 0;
}

static uint32_t cell_of(struct object_accounts *a, const struct object_event *e)
{
    const uint32_t class = size_class(e->size_bytes);
    const uint64_t key = (((uint64_t)e->stack << THREAD_BITS | e->thread) << CLASS_BITS | class) + 1;
    const size_t at = key * UINT64_C(0x9e3779b97f4a7c15) >> 32 & (RECENT_CELLS - 1);
    if (a->recent[at].key == key && a->recent[at].number < a->cells.len)
        return a->recent[at].number;
    bool added;
    const uint32_t number = (uint32_t)map_put_u64(&a->cell_numbers, key, a->cells.len, &added);
    if (added)
        *vec_push(&a->cells) = (struct cell){e->image, e->stack, e->thread, class};
    a->recent[at].key = key;
    a->recent[at].number = number;
    return number;
}

static struct sums live_of(const struct cell *c)
{
    return (struct sums){c->allocated.objects - c->freed.objects, c->allocated.bytes - c->freed.bytes};
}

/* To be called before the cell changes: if the peak was since its last change, what is live now was live then. */
static void store_peak(const struct image *i, struct cell *c)
{
    if (c->peak_number == i->peak_number)
        return;
    c->at_peak = live_of(c);
    c->peak_number = i->peak_number;
}

static void add(struct sums *s, uint64_t bytes)
{
    s->objects++;
    s->bytes += bytes;
}

static void count_freed(struct object_accounts *a, struct image *i, const struct object *o, uint64_t time_ns,
                        bool is_temporary)
{
    if (o->cell == OLDER) {
        a->older.objects += time_ns > a->span_ns; /* else its realloc() began before the span */
        a->older.bytes += time_ns > a->span_ns ? o->size_bytes : 0;
        return;
    }
    struct cell *c = &a->cells.at[o->cell];
    const uint64_t life_ns = time_ns > o->born_ns ? time_ns - o->born_ns : 0;
    int class = 0;
    store_peak(i, c);
    add(&c->freed, o->size_bytes);
    if (is_temporary)
        add(&c->temporary, o->size_bytes);
    while (class < PROFILE_LIFETIMES - 1 && life_ns >= a->p->lifetime_ns[class])
        class ++;
    c->lifetimes[class]++;
    i->live_bytes -= o->size_bytes;
    tell(a, o, time_ns, true);
}

static void remember_free(struct object_accounts *a, struct image *i, const struct object *o,
                          const struct object_event *e, uint64_t time_ns, uint32_t location, bool reallocated)
{
    if (o->cell == OLDER)
        return;
    if (a->calls) {
        struct object_call *c = call_of(a->calls, e->image, location);
        c->freed++;
        c->freed_bytes += o->size_bytes;
    }
    if (!i->recent_frees)
        i->recent_frees = mem_array(FREES_MAX, sizeof(*i->recent_frees));
    i->recent_frees[i->frees++ % FREES_MAX] = (struct profile_free){.cell = o->cell,
                                                                    .serial = o->serial,
                                                                    .address = o->address,
                                                                    .size_bytes = o->size_bytes,
                                                                    .born_ns = o->born_ns,
                                                                    .freed_ns = time_ns,
                                                                    .stack = PROFILE_NONE,
                                                                    .location = location,
                                                                    .thread = e->thread,
                                                                    .reallocated = reallocated};
}

void object_accounts_expect(const struct object_accounts *a, uint32_t image, uint64_t address)
{
    if (image < a->images.len)
        address_table_prefetch(&a->images.at[image].live, BYTES, address);
}

void object_accounts_wait_for_births(struct object_accounts *a)
{
    a->early = mem_alloc(sizeof(*a->early));
}

uint64_t object_accounts_early_frees(const struct object_accounts *a, uint32_t image)
{
    return image < a->images.len ? a->images.at[image].early_frees : 0;
}

static void note_early(struct object_accounts *a, const struct object_event *e, bool reallocates)
{
    if (a->early && e->address)
        early_frees_note(a->early, &(struct early_free){e->image, e->address, e->time_ns, e->cpu, e->thread,
                                                        e->location, reallocates});
}

/* The object was freed before it was allocated, as the times have it. */
static void free_early(struct object_accounts *a, const struct object_event *born, const struct early_free *f)
{
    struct image *i = image_of(a, born->image);
    struct object *o = address_table_find(&i->live, BYTES, born->address);
    const struct object_event e = {.image = born->image, .thread = f->thread, .time_ns = born->time_ns};
    i->early_frees++;
    count_freed(a, i, o, born->time_ns, o->serial == thread_of(a, f->thread)->last_serial);
    remember_free(a, i, o, &e, born->time_ns, f->location, f->reallocates);
    address_table_remove(&i->live, BYTES, o);
}

void object_accounts_allocated(struct object_accounts *a, const struct object_event *e)
{
    struct image *i = image_of(a, e->image);
    struct thread *t = thread_of(a, e->thread);
    pass_points(a, i, e->image, e->time_ns);
    struct object *before = address_table_find(&i->live, BYTES, e->address);
    if (before->address) {
        count_freed(a, i, before, e->time_ns, false);
        address_table_remove(&i->live, BYTES, before);
        a->p->images.at[e->image].losses[PROFILE_LOST_FREES_UNSEEN]++;
    }
    const struct object o = {e->address, ++i->serials, e->time_ns, e->size_bytes, cell_of(a, e)};
    struct cell *c = &a->cells.at[o.cell];
    store_peak(i, c);
    add(&c->allocated, o.size_bytes);
    i->live_bytes += o.size_bytes;
    i->allocated_bytes += o.size_bytes;
    if (i->live_bytes > i->peak_bytes) {
        i->peak_bytes = i->live_bytes;
        i->peak_ns = e->time_ns;
        i->peak_number++;
    }
    address_table_add(&i->live, BYTES, &o);
    t->last_serial = o.serial;
    tell(a, &o, e->time_ns, false);
    struct early_free early;
    if (a->early && early_frees_take(a->early, e->image, e->address, e->cpu, e->time_ns, &early))
        free_early(a, e, &early);
}

void object_accounts_failed(struct object_accounts *a, const struct object_event *e)
{
    a->p->images.at[e->image].losses[PROFILE_FAILED_REQUESTS]++;
    if (a->calls)
        call_of(a->calls, e->image, e->location)->failed++;
}

bool object_accounts_freed(struct object_accounts *a, const struct object_event *e)
{
    struct image *i = image_of(a, e->image);
    pass_points(a, i, e->image, e->time_ns);
    struct object *o = address_table_find(&i->live, BYTES, e->address);
    if (!o->address) {
        note_early(a, e, false);
        return false;
    }
    count_freed(a, i, o, e->time_ns, o->serial == thread_of(a, e->thread)->last_serial);
    remember_free(a, i, o, e, e->time_ns, e->location, false);
    address_table_remove(&i->live, BYTES, o);
    return true;
}

/* The object is where it was before realloc() began. If another one is there, the events between were lost, and one of
 * them freed it. */
static void put_back(struct object_accounts *a, uint32_t image, struct thread *t)
{
    struct image *i = &a->images.at[image];
    const struct object o = t->moving;
    t->moving.address = 0;
    if (!o.address)
        return;
    if (!*(uint64_t *)address_table_find(&i->live, BYTES, o.address)) {
        address_table_add(&i->live, BYTES, &o);
        return;
    }
    count_freed(a, i, &o, t->moving_ns, false);
    a->p->images.at[image].losses[PROFILE_LOST_FREES_UNSEEN]++;
}

bool object_accounts_realloc_begins(struct object_accounts *a, const struct object_event *e)
{
    struct image *i = image_of(a, e->image);
    struct thread *t = thread_of(a, e->thread);
    put_back(a, e->image, t); /* the end of the one before was lost */
    struct object *o = address_table_find(&i->live, BYTES, e->address);
    t->moving = *o;
    t->moving_ns = e->time_ns;
    if (!o->address) {
        note_early(a, e, true);
        return false;
    }
    address_table_remove(&i->live, BYTES, o);
    return true;
}

void object_accounts_realloc_ended(struct object_accounts *a, const struct object_event *e)
{
    struct image *i = image_of(a, e->image);
    struct thread *t = thread_of(a, e->thread);
    const struct object o = t->moving;
    const bool failed = !e->address && e->size_bytes;
    if (failed)
        put_back(a, e->image, t);
    if (failed && a->early)
        early_frees_take_back(a->early, e->image, e->thread);
    t->moving.address = 0;
    if (o.address && !failed) {
        pass_points(a, i, e->image, t->moving_ns);
        count_freed(a, i, &o, t->moving_ns, o.serial == t->last_serial);
        remember_free(a, i, &o, e, t->moving_ns, e->location, e->address != 0);
    }
    if (e->address)
        object_accounts_allocated(a, e);
    else if (failed)
        object_accounts_failed(a, e);
}

/* ---- a span ---- */

static void begin_image(struct image *i)
{
    for (size_t k = 0; k <= i->live.mask; k++)
        ((struct object *)address_table_slot(&i->live, BYTES, k))->cell = OLDER;
    i->live_bytes = i->allocated_bytes = i->peak_bytes = i->peak_ns = 0;
    i->frees = i->early_frees = i->peak_number = 0;
}

void object_accounts_begin_span(struct object_accounts *a, uint64_t now_ns)
{
    a->span_ns = now_ns;
    vec_each (struct image, i, &a->images)
        begin_image(i);
    vec_each (struct thread, t, &a->threads)
        t->moving.cell = OLDER;
    vec_each (struct profile_image, i, &a->p->images)
        memset(i->losses, 0, sizeof(i->losses));
    a->cells.len = 0;
    map_release(&a->cell_numbers);
    if (a->calls)
        object_calls_release(a->calls);
    memset(a->recent, 0, sizeof(a->recent));
}

struct profile_older_frees object_accounts_older_frees(const struct object_accounts *a)
{
    return a->older;
}

/* ---- the profile ---- */

static struct profile_sums sums_of(struct sums s)
{
    return (struct profile_sums){.samples = s.objects,
                                 .seen_bytes = (double)s.bytes,
                                 .bytes = (double)s.bytes,
                                 .count = (double)s.objects};
}

static void finish_cell(struct object_accounts *a, struct cell *c)
{
    store_peak(&a->images.at[c->image], c);
    struct profile_cell cell = {.image = c->image,
                                .stack = c->stack,
                                .thread = c->thread,
                                .size_class = (uint8_t)c->size_class,
                                .period_bytes = 1,
                                .allocated = sums_of(c->allocated),
                                .freed = sums_of(c->freed),
                                .at_peak = sums_of(c->at_peak),
                                .temporary_samples = c->temporary.objects,
                                .temporary_bytes = (double)c->temporary.bytes};
    memcpy(cell.lifetimes, c->lifetimes, sizeof(cell.lifetimes));
    *vec_push(&a->p->cells) = cell;
}

static void finish_image(struct object_accounts *a, uint32_t image)
{
    struct image *i = &a->images.at[image];
    struct profile *p = a->p;
    pass_points(a, i, image, UINT64_MAX);
    p->images.at[image].peak_ns = i->peak_ns;
    p->images.at[image].peak_bytes = (double)i->peak_bytes;
    for (size_t k = 0; k <= i->live.mask; k++) {
        const struct object *o = (const struct object *)address_table_slot(&i->live, BYTES, k);
        if (o->address && o->cell != OLDER)
            *vec_push(&p->samples) = (struct profile_sample){.cell = o->cell,
                                                             .serial = o->serial,
                                                             .address = o->address,
                                                             .size_bytes = o->size_bytes,
                                                             .slack_bytes = PROFILE_SLACK_UNKNOWN,
                                                             .born_ns = o->born_ns};
    }
    for (uint64_t k = i->frees > FREES_MAX ? i->frees - FREES_MAX : 0; k < i->frees; k++)
        *vec_push(&p->frees) = i->recent_frees[k % FREES_MAX];
}

void object_accounts_finish(struct object_accounts *a)
{
    for (uint32_t i = 0; i < a->p->images.len; i++)
        image_of(a, i);
    for (uint32_t t = 0; t < a->threads.len; t++)
        put_back(a, a->p->threads.at[t].image, &a->threads.at[t]);
    vec_each (struct cell, c, &a->cells)
        finish_cell(a, c);
    for (uint32_t i = 0; i < a->images.len; i++)
        finish_image(a, i);
    a->p->period_bytes = 1;
}
