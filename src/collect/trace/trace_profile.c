/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/trace/trace_profile.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "collect/trace/trace_sites.h"
#include "model/profile/object_accounts.h"
#include "wire/event_schema.h"

#define WORDS_MOST 3  /* of the fields of an event of the agent */
#define AHEAD      32 /* events that are read before the first of them is taken: the memory comes meanwhile */

/* An event of the agent, with the place where its fields are copied to. */
struct coming {
    struct trace_event event;
    uint64_t words[WORDS_MOST];
};

struct work {
    struct profile *p;
    struct object_accounts *accounts;
    struct trace_sites *sites;
    struct VEC(
        uint32_t) stacks; /* for each location the stack that has it alone; PROFILE_NONE: there is none yet */
    struct trace_profile_counts *counts;
    /* classes of the agent, with the fields that this version writes */
    const struct event_class *known[EVENT_ID_OWN];
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
    const uint32_t image = trace_sites_image(w->sites, event);
    struct object_event o = {.image = image,
                             .thread = trace_sites_thread(w->sites, event, image),
                             .time_ns = event->realtime_ns,
                             .address = word(event, 0)};
    switch ((enum event_id)event->class->id) {
    case EVENT_malloc:
    case EVENT_calloc:
    case EVENT_memalign:
    case EVENT_realloc_end: {
        o.size_bytes = word(event, 1);
        o.location = trace_sites_location(w->sites, image, word(event, 2));
        o.stack = stack_of(w, o.location);
        if (event->class->id == EVENT_realloc_end)
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
        o.location = trace_sites_location(w->sites, image, word(event, 1));
        free_of(w, &o, object_accounts_freed(w->accounts, &o));
        break;
    case EVENT_ID_OWN:
        break;
    }
}

/* Returns whether it is an event of the agent that has the fields which this version writes. */
static bool has_known_fields(const struct trace_event *event)
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

static bool is_known(struct work *w, const struct trace_event *event)
{
    const struct event_class *class = event->class;
    if (class->id < EVENT_ID_OWN && w->known[class->id] == class)
        return true;
    if (!has_known_fields(event))
        return false;
    w->known[class->id] = class;
    return true;
}

/* The events so far only tell which blocks are live. */
static void begin_span(struct work *w, uint64_t from_ns)
{
    object_accounts_begin_span(w->accounts, from_ns);
    w->counts->events = w->counts->unknown_frees = 0;
}

static void take_all(struct work *w)
{
    for (size_t k = 0; k < w->n_coming; k++)
        take(w, &w->coming[k].event);
    w->n_coming = 0;
}

/* Takes the event soon, in its order. */
static void expect(struct work *w, const struct trace_event *event)
{
    struct coming *c = &w->coming[w->n_coming++];
    const uint32_t bytes = 8u * (event->class->n_fields < WORDS_MOST ? event->class->n_fields : WORDS_MOST);
    c->event = *event;
    c->event.fields = memcpy(c->words, event->fields, bytes);
    object_accounts_expect(w->accounts, trace_sites_image(w->sites, event), word(event, 0));
    if (w->n_coming == AHEAD)
        take_all(w);
}

/* Returns 0, or -errno with a line. */
static int read_events(struct work *w, struct event_folder *t, struct trace_span span, struct error *e)
{
    struct trace_event event;
    bool began = !span.from_ns;
    int found;
    while ((found = event_folder_next(t, &event, e)) > 0 && event.realtime_ns <= span.to_ns) {
        if (!began && event.realtime_ns > span.from_ns) {
            take_all(w);
            begin_span(w, span.from_ns);
            began = true;
        }
        w->counts->events++;
        if (is_known(w, &event))
            expect(w, &event);
    }
    take_all(w);
    if (!began)
        begin_span(w, span.from_ns);
    return found < 0 ? found : 0;
}

int trace_profile_read(struct profile *p, const char *folder, struct trace_span span,
                       struct trace_profile_counts *counts, struct error *e)
{
    return trace_profile_read_calls(p, folder, span, NULL, counts, e);
}

int trace_profile_read_calls(struct profile *p, const char *folder, struct trace_span span,
                             struct object_calls *calls, struct trace_profile_counts *counts, struct error *e)
{
    struct event_folder *t;
    int bad = event_folder_open(&t, folder, e);
    if (bad)
        return bad;
    *counts = (struct trace_profile_counts){.events = 0};
    p->stacks.len = p->stack_locations.len = 0;
    struct work w = {
        .p = p, .accounts = object_accounts_new(p), .sites = trace_sites_new(p), .counts = counts};
    object_accounts_count_calls(w.accounts, calls);
    bad = read_events(&w, t, span, e);
    if (!bad)
        object_accounts_finish(w.accounts);
    counts->older = object_accounts_older_frees(w.accounts);
    counts->losses = event_folder_losses(t);
    vec_release(&w.stacks);
    trace_sites_free(w.sites);
    object_accounts_free(w.accounts);
    event_folder_close(t);
    return bad;
}
