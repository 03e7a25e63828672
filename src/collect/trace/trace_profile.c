/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/trace/trace_profile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "collect/trace/agent_events.h"
#include "collect/trace/trace_sites.h"
#include "model/profile/object_accounts.h"

struct work {
    struct profile *p;
    struct object_accounts *accounts;
    struct trace_sites *sites;
    struct VEC(
        uint32_t) stacks; /* for each location the stack that has it alone; PROFILE_NONE: there is none yet */
    struct map full;      /* from image and number of a stack in events to the stack */
    struct trace_profile_counts *counts;
};

static uint32_t stack_of(struct work *w, uint32_t image, uint64_t return_address)
{
    const uint32_t location = trace_sites_location(w->sites, image, return_address);
    while (w->stacks.len <= location)
        *vec_push(&w->stacks) = PROFILE_NONE;
    if (w->stacks.at[location] != PROFILE_NONE)
        return w->stacks.at[location];
    w->stacks.at[location] = (uint32_t)w->p->stacks.len;
    *vec_push(&w->p->stacks) =
        (struct profile_stack){.first = (uint32_t)w->p->stack_locations.len, .depth = 1};
    *vec_push(&w->p->stack_locations) = location;
    return w->stacks.at[location];
}

/* Returns the stack of an allocation; if it is not known, one of its call alone. */
static uint32_t whole_stack_of(struct work *w, uint32_t image, const struct agent_event *a)
{
    const size_t known =
        a->stack < PROFILE_NONE ? map_get_u64(&w->full, (uint64_t)image << 32 | a->stack) : MAP_NONE;
    w->counts->without_stack += known == MAP_NONE && w->p->stack_numbers.len;
    return known == MAP_NONE ? stack_of(w, image, a->site) : (uint32_t)known;
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

static void take(struct work *w, const struct trace_event *event, const struct agent_event *a)
{
    const uint32_t image = trace_sites_image(w->sites, event);
    struct object_event o = {.image = image,
                             .thread = trace_sites_thread(w->sites, event, image),
                             .time_ns = event->realtime_ns,
                             .address = a->ptr};
    switch (a->id) {
    case EVENT_malloc:
    case EVENT_calloc:
    case EVENT_memalign:
    case EVENT_realloc_end: {
        o.size_bytes = a->size;
        o.stack = whole_stack_of(w, image, a);
        if (a->id == EVENT_realloc_end)
            object_accounts_realloc_ended(w->accounts, &o);
        else if (o.address)
            object_accounts_allocated(w->accounts, &o);
        else
            w->p->images.at[image].losses[PROFILE_FAILED_REQUESTS]++;
        break;
    }
    case EVENT_realloc_begin:
        o.location = trace_sites_location(w->sites, image, a->site);
        free_of(w, &o, object_accounts_realloc_begins(w->accounts, &o));
        break;
    case EVENT_free:
        o.location = trace_sites_location(w->sites, image, a->site);
        free_of(w, &o, object_accounts_freed(w->accounts, &o));
        break;
    default:
        break;
    }
}

/* Of a trace without times: what would show a time, an age or a lifetime. */
static void forget_times(struct profile *p)
{
    p->samples.len = p->frees.len = 0;
    vec_each (struct profile_image, i, &p->images)
        i->peak_ns = 0;
    vec_each (struct profile_cell, c, &p->cells)
        memset(c->lifetimes, 0, sizeof(c->lifetimes));
}

int trace_profile_read(struct profile *p, const char *folder, uint64_t until_ns,
                       struct trace_profile_counts *counts, struct error *e)
{
    struct event_folder *t;
    struct trace_event event;
    struct agent_event a;
    int found = event_folder_open(&t, folder, e);
    if (found)
        return found;
    if (until_ns != UINT64_MAX && event_folder_clock(t)) {
        found = error_set(e, EINVAL, "%s has no times (--clock %s): leave out @TIME", folder,
                          event_folder_clock(t));
        event_folder_close(t);
        return found;
    }
    *counts = (struct trace_profile_counts){.events = 0};
    if (!p->stack_numbers.len)
        p->stacks.len = p->stack_locations.len = 0;
    struct work w = {
        .p = p, .accounts = object_accounts_new(p), .sites = trace_sites_new(p), .counts = counts};
    vec_each (const struct profile_stack_number, k, &p->stack_numbers)
        map_put_u64(&w.full, (uint64_t)k->image << 32 | k->number, k->stack, NULL);
    while ((found = event_folder_next(t, &event, e)) > 0 && event.realtime_ns <= until_ns) {
        counts->events++;
        if (agent_events_read(&event, &a))
            take(&w, &event, &a);
    }
    if (found >= 0)
        object_accounts_finish(w.accounts);
    if (event_folder_clock(t))
        forget_times(p);
    counts->losses = event_folder_losses(t);
    counts->clock = profile_string(p, event_folder_clock(t));
    counts->filter = profile_string(p, event_folder_where(t));
    vec_release(&w.stacks);
    map_release(&w.full);
    trace_sites_free(w.sites);
    object_accounts_free(w.accounts);
    event_folder_close(t);
    return found < 0 ? found : 0;
}
