/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/trace/trace_profile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "collect/trace/agent_events.h"
#include "collect/trace/trace_sites.h"
#include "model/profile/object_accounts.h"
#include "model/trace/clock_kind.h"

#define AHEAD 32 /* events that are read before the first of them is taken: the memory comes meanwhile */

/* An event of the agent that was read ahead. event.fields is no longer valid; `agent` has their values. */
struct coming {
    struct trace_event event;
    struct agent_event agent;
};

struct work {
    struct profile *p;
    struct object_accounts *accounts;
    struct trace_sites *sites;
    struct VEC(
        uint32_t) stacks; /* for each location the stack that has it alone; PROFILE_NONE: there is none yet */
    struct map full;      /* from image and number of a stack in events to the stack */
    struct trace_profile_counts *counts;
    const struct object_listener *listener;
    struct coming coming[AHEAD];
    size_t n_coming;
};

static uint32_t stack_of(struct work *w, uint32_t location)
{
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
static uint32_t whole_stack_of(struct work *w, const struct object_event *o, const struct agent_event *a)
{
    const size_t known =
        a->stack < PROFILE_NONE ? map_get_u64(&w->full, (uint64_t)o->image << 32 | a->stack) : MAP_NONE;
    w->counts->without_stack += known == MAP_NONE && w->p->stack_numbers.len;
    return known == MAP_NONE ? stack_of(w, o->location) : (uint32_t)known;
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

static void take(struct work *w, const struct coming *c)
{
    const struct agent_event *a = &c->agent;
    const uint32_t image = trace_sites_image(w->sites, &c->event);
    struct object_event o = {.image = image,
                             .thread = trace_sites_thread(w->sites, &c->event, image),
                             .cpu = c->event.cpu,
                             .time_ns = c->event.realtime_ns,
                             .address = a->ptr};
    switch (a->id) {
    case EVENT_malloc:
    case EVENT_calloc:
    case EVENT_memalign:
    case EVENT_realloc_end: {
        o.size_bytes = a->size;
        o.location = trace_sites_location(w->sites, image, a->site);
        o.stack = whole_stack_of(w, &o, a);
        if (a->id == EVENT_realloc_end)
            object_accounts_realloc_ended(w->accounts, &o);
        else if (o.address)
            object_accounts_allocated(w->accounts, &o);
        else
            object_accounts_failed(w->accounts, &o);
        break;
    }
    case EVENT_realloc_begin: /* realloc_end has the call */
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

/* For a trace without times: clears the figures that would show a time, an age or a lifetime. */
static void forget_times(struct profile *p)
{
    p->samples.len = p->frees.len = 0;
    vec_each (struct profile_image, i, &p->images)
        i->peak_ns = 0;
    vec_each (struct profile_cell, c, &p->cells)
        memset(c->lifetimes, 0, sizeof(c->lifetimes));
}

/* The events so far only tell which blocks are live. */
static void begin_span(struct work *w, uint64_t from_ns)
{
    object_accounts_begin_span(w->accounts, from_ns);
    object_accounts_listen(w->accounts, w->listener);
    w->counts->events = w->counts->unknown_frees = w->counts->without_stack = 0;
}

static void take_all(struct work *w)
{
    for (size_t k = 0; k < w->n_coming; k++)
        take(w, &w->coming[k]);
    w->n_coming = 0;
}

/* Takes the event soon, in its order. */
static void expect(struct work *w, const struct coming *c)
{
    object_accounts_expect(w->accounts, trace_sites_image(w->sites, &c->event), c->agent.ptr);
    w->coming[w->n_coming++] = *c;
    if (w->n_coming == AHEAD)
        take_all(w);
}

/* Frees that came before their allocation were taken for those of unknown blocks until it came. */
static void count_early(struct work *w)
{
    for (uint32_t k = 0; k < w->p->images.len; k++) {
        struct profile_image *i = &w->p->images.at[k];
        const uint64_t early = object_accounts_early_frees(w->accounts, k);
        uint64_t *counted = i->parent_id ? &i->losses[PROFILE_INHERITED_FREES] : &w->counts->unknown_frees;
        *counted -= early < *counted ? early : *counted;
        w->counts->early_frees += early;
    }
}

/* Returns 0, or -errno with a line. */
static int read_events(struct work *w, struct event_folder *t, struct trace_span span, struct error *e)
{
    struct coming next;
    bool began = !span.from_ns;
    int found;
    while ((found = event_folder_next(t, &next.event, e)) > 0 && next.event.realtime_ns <= span.to_ns) {
        if (!began && next.event.realtime_ns > span.from_ns) {
            take_all(w);
            begin_span(w, span.from_ns);
            began = true;
        }
        w->counts->events++;
        if (agent_events_read(&next.event, &next.agent)) {
            expect(w, &next);
        } else if (trace_sites_is_module(&next.event)) {
            take_all(w);
            trace_sites_take(w->sites, &next.event);
        }
    }
    take_all(w);
    if (!began)
        begin_span(w, span.from_ns);
    return found < 0 ? found : 0;
}

int trace_profile_read(struct profile *p, const char *folder, struct trace_span span,
                       struct trace_profile_counts *counts, struct error *e)
{
    return trace_profile_read_also(p, folder, span, (struct trace_profile_also){.calls = NULL}, counts, e);
}

int trace_profile_read_also(struct profile *p, const char *folder, struct trace_span span,
                            struct trace_profile_also also, struct trace_profile_counts *counts,
                            struct error *e)
{
    struct event_folder *t;
    int bad = event_folder_open(&t, folder, e);
    if (bad)
        return bad;
    const char *clock = event_folder_clock(t);
    if (clock_kind_has_numbers(clock) && (span.from_ns || span.to_ns != UINT64_MAX)) {
        bad = error_set(e, EINVAL, "%s has no times (--clock %s): leave out @TIME", folder, clock);
        event_folder_close(t);
        return bad;
    }
    *counts = (struct trace_profile_counts){.events = 0};
    if (!p->stack_numbers.len)
        p->stacks.len = p->stack_locations.len = 0;
    struct work w = {.p = p,
                     .accounts = object_accounts_new(p),
                     .sites = trace_sites_new(p),
                     .counts = counts,
                     .listener = also.listener};
    vec_each (const struct profile_stack_number, k, &p->stack_numbers)
        map_put_u64(&w.full, (uint64_t)k->image << 32 | k->number, k->stack, NULL);
    object_accounts_count_calls(w.accounts, also.calls);
    if (!span.from_ns)
        object_accounts_listen(w.accounts, also.listener);
    if (!clock)
        object_accounts_wait_for_births(w.accounts);
    bad = read_events(&w, t, span, e);
    if (!bad)
        object_accounts_finish(w.accounts);
    count_early(&w);
    if (clock_kind_has_numbers(clock))
        forget_times(p);
    counts->older = object_accounts_older_frees(w.accounts);
    counts->losses = event_folder_losses(t);
    counts->wall_step_ns = event_folder_wall_step_ns(t);
    counts->clock = profile_string(p, clock);
    counts->filter = profile_string(p, event_folder_where(t));
    vec_release(&w.stacks);
    map_release(&w.full);
    trace_sites_free(w.sites);
    object_accounts_free(w.accounts);
    event_folder_close(t);
    return bad;
}
