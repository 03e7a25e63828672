/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/trace/trace_sites.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash_map.h"
#include "base/mem.h"
#include "wire/event_schema.h"

/* What an image has at an address now, by its events. */
struct place {
    uint32_t image, mapping; /* in the profile */
};

struct trace_sites {
    struct profile *p;
    struct VEC(struct place) places;
    struct map images;            /* by id */
    struct map threads;           /* by image and thread id */
    struct map locations;         /* by module and address */
    struct VEC(struct map) sites; /* for each image its locations, by return address */
    uint64_t last_id;             /* of the image that was asked for last */
    uint32_t last_image;
};

struct location_key {
    uint64_t module, address;
};

struct trace_sites *trace_sites_new(struct profile *p)
{
    struct trace_sites *s = mem_alloc(sizeof(*s));
    s->p = p;
    for (uint32_t i = 0; i < p->locations.len; i++) {
        const struct location_key key = {p->locations.at[i].module, p->locations.at[i].address};
        if (!p->locations.at[i].exact)
            map_put(&s->locations, &key, sizeof(key), i, NULL);
    }
    for (uint32_t i = 0; i < p->images.len; i++)
        map_put_u64(&s->images, p->images.at[i].id, i, NULL);
    for (uint32_t i = 0; i < p->threads.len; i++) {
        const struct profile_thread *t = &p->threads.at[i];
        map_put_u64(&s->threads, (uint64_t)t->image << 32 | (uint32_t)t->tid, i, NULL);
    }
    return s;
}

void trace_sites_free(struct trace_sites *s)
{
    if (!s)
        return;
    vec_each (struct map, m, &s->sites)
        map_release(m);
    vec_release(&s->sites);
    vec_release(&s->places);
    map_release(&s->images);
    map_release(&s->threads);
    map_release(&s->locations);
    free(s);
}

uint32_t trace_sites_image(struct trace_sites *s, const struct trace_event *e)
{
    if (s->last_id == e->image_id && s->sites.len)
        return s->last_image;
    bool added;
    const uint32_t image = (uint32_t)map_put_u64(&s->images, e->image_id, s->p->images.len, &added);
    if (added)
        *vec_push(&s->p->images) = (struct profile_image){.id = e->image_id,
                                                          .pid = e->pid,
                                                          .state = PROFILE_IMAGE_CUT,
                                                          .began_ns = e->realtime_ns,
                                                          .taken_ns = e->realtime_ns};
    while (s->sites.len <= image)
        vec_push(&s->sites);
    s->last_id = e->image_id;
    return s->last_image = image;
}

uint32_t trace_sites_thread(struct trace_sites *s, const struct trace_event *e, uint32_t image)
{
    bool added;
    const uint64_t key = (uint64_t)image << 32 | e->thread;
    const uint32_t thread = (uint32_t)map_put_u64(&s->threads, key, s->p->threads.len, &added);
    if (added)
        *vec_push(&s->p->threads) =
            (struct profile_thread){.image = image, .tid = (int32_t)e->thread, .first_ns = e->realtime_ns};
    return thread;
}

static bool is_within(const struct profile *p, const struct profile_mapping *m, uint64_t address)
{
    const struct profile_module *module = &p->modules.at[m->module];
    return address - m->start < module->end - module->start;
}

static bool overlap(const struct profile *p, const struct profile_mapping *a, const struct profile_mapping *b)
{
    return is_within(p, a, b->start) || is_within(p, b, a->start);
}

/* Returns what the image has at the address: the module of which an event said so, or the last one that came there.
 * NULL: none. */
static const struct profile_mapping *mapping_at(const struct trace_sites *s, uint32_t image, uint64_t address)
{
    const struct profile_mapping *found = NULL;
    vec_each (const struct place, place, &s->places)
        if (place->image == image && is_within(s->p, &s->p->mappings.at[place->mapping], address))
            return &s->p->mappings.at[place->mapping];
    vec_each (const struct profile_mapping, m, &s->p->mappings)
        if (m->image == image && is_within(s->p, m, address))
            found = m;
    return found;
}

/* Returns the number of the mapping that module_loaded tells of; SIZE_MAX: the profile does not have it. */
static size_t mapping_of(const struct profile *p, uint32_t image, const struct trace_event *e)
{
    const unsigned char *at;
    const struct event_field *first = trace_event_field(e, "start", &at);
    const uint64_t start = first && first->type == EVENT_HEX ? trace_event_number(first, at) : 0;
    const struct event_field *path = trace_event_field(e, "path", &at);
    for (size_t i = 0; path && path->type == EVENT_TEXT && i < p->mappings.len; i++) {
        const struct profile_mapping *m = &p->mappings.at[i];
        /* a path may be cut in the event */
        if (m->image == image && m->start == start &&
            !strncmp(profile_text(p, p->modules.at[m->module].path), (const char *)at,
                     strnlen((const char *)at, path->bytes)))
            return i;
    }
    return SIZE_MAX;
}

/* A mapping takes the place of those that it overlaps. */
static void put_mapping(struct trace_sites *s, uint32_t image, uint32_t mapping)
{
    const struct profile_mapping *m = &s->p->mappings.at[mapping];
    size_t kept = 0;
    vec_each (const struct place, place, &s->places)
        if (place->image != image || !overlap(s->p, &s->p->mappings.at[place->mapping], m))
            s->places.at[kept++] = *place;
    s->places.len = kept;
    *vec_push(&s->places) = (struct place){image, mapping};
}

bool trace_sites_is_module(const struct trace_event *e)
{
    return e->class->id == EVENT_module_loaded && !strcmp(e->domain, "ust");
}

void trace_sites_take(struct trace_sites *s, const struct trace_event *e)
{
    const uint32_t image = trace_sites_image(s, e);
    const size_t mapping = mapping_of(s->p, image, e);
    if (mapping == SIZE_MAX ||
        mapping_at(s, image, s->p->mappings.at[mapping].start) == &s->p->mappings.at[mapping])
        return;
    put_mapping(s, image, (uint32_t)mapping);
    map_release(&s->sites.at[image]);
}

static uint32_t add_location(struct trace_sites *s, uint32_t image, uint64_t return_address)
{
    const struct profile_mapping *m = mapping_at(s, image, return_address);
    const struct location_key key = {m ? m->module : PROFILE_NONE,
                                     m ? return_address - m->bias : return_address};
    bool added;
    const size_t location = map_put(&s->locations, &key, sizeof(key), s->p->locations.len, &added);
    if (added)
        *vec_push(&s->p->locations) =
            (struct profile_location){.module = (uint32_t)key.module, .address = key.address};
    return (uint32_t)location;
}

uint32_t trace_sites_location(struct trace_sites *s, uint32_t image, uint64_t return_address)
{
    const size_t known = map_get_u64(&s->sites.at[image], return_address);
    if (known != MAP_NONE)
        return (uint32_t)known;
    const uint32_t location = add_location(s, image, return_address);
    map_put_u64(&s->sites.at[image], return_address, location, NULL);
    return location;
}
