/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/sum/module_events.h"

#include <stdlib.h>

#include "base/hash_map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "collect/trace/agent_events.h"

#define EVENTS_MOST (1u << 17) /* 80 MB: a damaged process may tell of modules without end */

struct told {
    struct trace_event event; /* its fields are owned */
    uint64_t start, end;      /* of the module */
};

/* The key of module_events.known. */
struct place {
    uint64_t image_id, address;
};

struct module_events {
    struct VEC(struct told *) all;
    uint64_t latest_ns; /* the largest of their times */
    struct map known;   /* numbers, by struct place: for events after latest_ns */
};

struct module_events *module_events_new(void)
{
    return mem_alloc(sizeof(struct module_events));
}

void module_events_free(struct module_events *m)
{
    if (!m)
        return;
    vec_each (struct told *, t, &m->all) {
        free((unsigned char *)(*t)->event.fields);
        free(*t);
    }
    vec_release(&m->all);
    map_release(&m->known);
    free(m);
}

bool module_events_has(uint16_t class_id)
{
    return class_id == EVENT_module_loaded || class_id == EVENT_module_unloaded;
}

void module_events_add(struct module_events *m, struct trace_event e)
{
    const uint32_t bytes = event_class_bytes(e.class);
    if (m->all.len == EVENTS_MOST)
        return;
    struct told *t = mem_alloc(sizeof(*t));
    unsigned char *fields = mem_alloc(bytes);
    e.fields = memcpy(fields, e.fields, bytes);
    *t = (struct told){
        .event = e, .start = trace_event_value(&e, "start"), .end = trace_event_value(&e, "end")};
    *vec_push(&m->all) = t;
    m->latest_ns = e.time_ns > m->latest_ns ? e.time_ns : m->latest_ns;
    map_release(&m->known);
}

static bool is_about(const struct told *t, uint64_t image_id, uint64_t address)
{
    return t->event.image_id == image_id && address - t->start < t->end - t->start;
}

static uint32_t find_before(const struct module_events *m, uint64_t image_id, uint64_t address,
                            uint64_t time_ns)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < m->all.len; i++) {
        const struct told *t = m->all.at[i];
        if (is_about(t, image_id, address) && t->event.time_ns <= time_ns &&
            (!found || t->event.time_ns >= m->all.at[found - 1]->event.time_ns))
            found = i + 1;
    }
    return found;
}

uint32_t module_events_before(struct module_events *m, const struct trace_event *e, uint64_t address)
{
    if (e->time_ns < m->latest_ns)
        return find_before(m, e->image_id, address, e->time_ns);
    const struct place place = {e->image_id, address};
    const size_t known = map_get(&m->known, &place, sizeof(place));
    if (known != MAP_NONE)
        return (uint32_t)known;
    const uint32_t found = find_before(m, e->image_id, address, e->time_ns);
    map_put(&m->known, &place, sizeof(place), found, NULL);
    return found;
}

const struct trace_event *module_events_told(const struct module_events *m, uint64_t image_id,
                                             uint64_t address, uint32_t number)
{
    const struct told *next = NULL;
    if (number) /* the module came; or it went, and this was its last code */
        return &m->all.at[number - 1]->event;
    vec_each (struct told *const, t, &m->all)
        if (is_about(*t, image_id, address) && (!next || (*t)->event.time_ns < next->event.time_ns))
            next = *t;
    return next && next->event.class->id == EVENT_module_unloaded ? &next->event : NULL;
}
