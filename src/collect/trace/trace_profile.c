/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/trace/trace_profile.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash_map.h"
#include "base/mem.h"
#include "model/profile/object_accounts.h"
#include "wire/event_schema.h"

/* What a return address of an image stands for. */
struct site {
    uint32_t location, stack;
};

struct image_sites {
    struct map numbers; /* of `sites`, by address */
    struct VEC(struct site) sites;
};

struct work {
    struct profile *p;
    struct object_accounts *accounts;
    struct map locations; /* by module and address */
    struct map images;    /* by id */
    struct map threads;   /* by image and thread id */
    struct VEC(struct image_sites) image_sites;
    struct trace_profile_counts *counts;
};

struct location_key {
    uint64_t module, address;
};

static void index_profile(struct work *w)
{
    for (uint32_t i = 0; i < w->p->locations.len; i++) {
        const struct profile_location *l = &w->p->locations.at[i];
        const struct location_key key = {l->module, l->address};
        if (!l->exact)
            map_put(&w->locations, &key, sizeof(key), i, NULL);
    }
    for (uint32_t i = 0; i < w->p->images.len; i++)
        map_put_u64(&w->images, w->p->images.at[i].id, i, NULL);
    for (uint32_t i = 0; i < w->p->threads.len; i++) {
        const struct profile_thread *t = &w->p->threads.at[i];
        map_put_u64(&w->threads, (uint64_t)t->image << 32 | (uint32_t)t->tid, i, NULL);
    }
}

/* The profile's number of the image; one that the recording lacks is added. */
static uint32_t image_of(struct work *w, const struct trace_event *event)
{
    bool added;
    const uint32_t image = (uint32_t)map_put_u64(&w->images, event->image_id, w->p->images.len, &added);
    if (added)
        *vec_push(&w->p->images) = (struct profile_image){.id = event->image_id,
                                                          .pid = event->pid,
                                                          .state = PROFILE_IMAGE_CUT,
                                                          .began_ns = event->realtime_ns,
                                                          .taken_ns = event->realtime_ns};
    while (w->image_sites.len <= image)
        vec_push(&w->image_sites);
    return image;
}

static uint32_t thread_of(struct work *w, const struct trace_event *event, uint32_t image)
{
    bool added;
    const uint64_t key = (uint64_t)image << 32 | event->thread;
    const uint32_t thread = (uint32_t)map_put_u64(&w->threads, key, w->p->threads.len, &added);
    if (added)
        *vec_push(&w->p->threads) = (struct profile_thread){
            .image = image, .tid = (int32_t)event->thread, .first_ns = event->realtime_ns};
    return thread;
}

/* Returns the module that the image has at the address: the last one that came there. PROFILE_NONE: none. */
static const struct profile_mapping *mapping_at(const struct profile *p, uint32_t image, uint64_t address)
{
    const struct profile_mapping *found = NULL;
    vec_each (const struct profile_mapping, m, &p->mappings) {
        const struct profile_module *module = &p->modules.at[m->module];
        if (m->image == image && address - m->start < module->end - module->start)
            found = m;
    }
    return found;
}

static struct site new_site(struct work *w, uint32_t image, uint64_t address)
{
    const struct profile_mapping *m = mapping_at(w->p, image, address);
    const struct location_key key = {m ? m->module : PROFILE_NONE, m ? address - m->bias : address};
    bool added;
    const struct site site = {
        (uint32_t)map_put(&w->locations, &key, sizeof(key), w->p->locations.len, &added),
        (uint32_t)w->p->stacks.len};
    if (added)
        *vec_push(&w->p->locations) =
            (struct profile_location){.module = (uint32_t)key.module, .address = key.address};
    *vec_push(&w->p->stacks) =
        (struct profile_stack){.first = (uint32_t)w->p->stack_locations.len, .depth = 1};
    *vec_push(&w->p->stack_locations) = site.location;
    return site;
}

static struct site site_of(struct work *w, uint32_t image, uint64_t address)
{
    struct image_sites *known = &w->image_sites.at[image];
    bool added;
    const size_t number = map_put_u64(&known->numbers, address, known->sites.len, &added);
    if (added)
        *vec_push(&known->sites) = new_site(w, image, address);
    return known->sites.at[number];
}

static uint64_t word(const struct trace_event *event, int n)
{
    uint64_t value;
    memcpy(&value, event->fields + 8 * n, sizeof(value));
    return value;
}

static void free_of(struct work *w, const struct object_event *o, bool found)
{
    struct profile_image *i = &w->p->images.at[o->image];
    if (found || !o->address)
        return;
    if (i->parent_id)
        i->losses[PROFILE_INHERITED_FREES]++;
    else
        w->counts->unknown_frees++;
}

static void take(struct work *w, const struct trace_event *event)
{
    const uint32_t image = image_of(w, event);
    struct object_event o = {.image = image,
                             .thread = thread_of(w, event, image),
                             .time_ns = event->realtime_ns,
                             .address = word(event, 0)};
    switch ((enum event_id)event->class->id) {
    case EVENT_malloc:
    case EVENT_calloc:
    case EVENT_memalign:
    case EVENT_realloc_end: {
        o.size_bytes = word(event, 1);
        o.stack = site_of(w, image, word(event, 2)).stack;
        if (event->class->id == EVENT_realloc_end)
            object_accounts_realloc_ended(w->accounts, &o);
        else if (o.address)
            object_accounts_allocated(w->accounts, &o);
        else
            w->p->images.at[image].losses[PROFILE_FAILED_REQUESTS]++;
        break;
    }
    case EVENT_realloc_begin:
        o.location = site_of(w, image, word(event, 1)).location;
        free_of(w, &o, object_accounts_realloc_begins(w->accounts, &o));
        break;
    case EVENT_free:
        o.location = site_of(w, image, word(event, 1)).location;
        free_of(w, &o, object_accounts_freed(w->accounts, &o));
        break;
    case EVENT_ID_OWN:
        break;
    }
}

/* Returns whether it is an event of the agent that has the fields which this version writes. */
static bool is_known(const struct trace_event *event)
{
#define FIELD(field, kind) +1
#define EVENT(number, name, fields)                                                                          \
    case number:                                                                                             \
        return event_class_bytes(event->class) == 8 * (0 fields);
    switch (strcmp(event->domain, "ust") ? 0 : event->class->id) {
        EVENT_SCHEMA(EVENT, FIELD)
    }
#undef EVENT
#undef FIELD
    return false;
}

static void release(struct work *w)
{
    map_release(&w->locations);
    map_release(&w->images);
    map_release(&w->threads);
    vec_each (struct image_sites, i, &w->image_sites) {
        map_release(&i->numbers);
        vec_release(&i->sites);
    }
    vec_release(&w->image_sites);
    object_accounts_free(w->accounts);
}

int trace_profile_read(struct profile *p, const char *folder, uint64_t until_ns,
                       struct trace_profile_counts *counts, struct error *e)
{
    struct event_folder *t;
    struct trace_event event;
    int found = event_folder_open(&t, folder, e);
    if (found)
        return found;
    *counts = (struct trace_profile_counts){.events = 0};
    p->stacks.len = p->stack_locations.len = 0;
    struct work w = {.p = p, .accounts = object_accounts_new(p), .counts = counts};
    index_profile(&w);
    while ((found = event_folder_next(t, &event, e)) > 0 && event.realtime_ns <= until_ns) {
        counts->events++;
        if (is_known(&event))
            take(&w, &event);
    }
    if (found >= 0)
        object_accounts_finish(w.accounts);
    counts->losses = event_folder_losses(t);
    release(&w);
    event_folder_close(t);
    return found < 0 ? found : 0;
}
