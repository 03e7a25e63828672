/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/trace/event_trigger.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/vec.h"
#include "collect/ledger/control_events.h"
#include "collect/trace/agent_events.h"

#define LAPS_MOST 2u /* a program may write faster than we look */

/* A class, and what the triggers make of it. */
struct judged {
    const struct event_class *class; /* NULL: none of this number was met yet */
    bool any;                        /* a trigger has its name and a query that fits */
    struct event_query *queries[TRACE_EVENTS_MAX];
};

/* What is known of a trigger. */
struct standing {
    bool met, fits;   /* an event of its name was met; and has the fields of its query */
    struct error why; /* why it has not */
};

struct event_triggers {
    const struct trace_triggers *t;
    struct user_classes *classes;
    struct VEC(struct judged) judged; /* by the number of the class */
    struct standing standing[TRACE_EVENTS_MAX];
    struct event_trigger_counts counts;
};

bool event_trigger_names(const char *name, const struct event_class *class)
{
    return event_list_matches(name, class->name) || event_list_matches(name, trace_event_name(class));
}

int event_trigger_query(struct event_query **out, const struct trace_event_trigger *t,
                        const struct event_class *class, struct error *e)
{
    const int bad = event_query_new(out, t->query, &class, 1, e);
    if (!bad && event_query_uses_place(*out))
        return error_set(e, EINVAL, "func, file and module are not known while the program runs: %s",
                         t->query);
    return bad;
}

struct event_triggers *event_triggers_new(const struct trace_triggers *t)
{
    struct event_triggers *w = mem_alloc(sizeof(*w));
    w->t = t;
    w->classes = user_classes_new();
    return w;
}

void event_triggers_free(struct event_triggers *w)
{
    if (!w)
        return;
    vec_each (struct judged, j, &w->judged)
        for (unsigned k = 0; k < w->t->n_events; k++)
            event_query_free(j->queries[k]);
    vec_release(&w->judged);
    user_classes_free(w->classes);
    free(w);
}

/* Finds the queries of a class that is met for the first time. */
static void judge_class(struct event_triggers *w, struct judged *j)
{
    for (unsigned k = 0; k < w->t->n_events; k++) {
        struct standing *s = &w->standing[k];
        if (!event_trigger_names(w->t->events[k].name, j->class))
            continue;
        s->met = true;
        if (!event_trigger_query(&j->queries[k], &w->t->events[k], j->class, &s->why)) {
            s->fits = j->any = true;
            continue;
        }
        event_query_free(j->queries[k]);
        j->queries[k] = NULL;
    }
}

static const struct event_class *class_of(struct event_triggers *w, struct user_events *u,
                                          const struct ring_event *event, uint32_t words)
{
    uint32_t n;
    const struct event_class *classes = agent_events(&n);
    for (uint32_t i = 0; i < n; i++)
        if (classes[i].id == event->id)
            return RING_EVENT_WORDS + event_class_bytes(&classes[i]) / 8 == words ? &classes[i] : NULL;
    return user_classes_find(w->classes, u, event->id, words);
}

/* Returns the class of an event as it was judged; NULL: it has none, or no trigger has its name. */
static const struct judged *judged_of(struct event_triggers *w, struct user_events *u,
                                      const struct ring_event *event, uint32_t words)
{
    const struct event_class *class = class_of(w, u, event, words);
    if (!class)
        return NULL;
    while (w->judged.len <= class->id)
        *vec_push(&w->judged) = (struct judged){NULL};
    struct judged *j = &w->judged.at[class->id];
    if (!j->class) {
        j->class = class;
        judge_class(w, j);
    }
    return j->any ? j : NULL;
}

static struct event_place no_place(void *arg, const struct trace_event *e)
{
    (void)arg, (void)e;
    return (struct event_place){NULL};
}

static bool is_trigger(const struct event_triggers *w, const struct judged *j, const struct trace_event *e,
                       uint64_t began_ns)
{
    for (unsigned k = 0; k < w->t->n_events; k++)
        if (j->queries[k] && event_query_fits(j->queries[k], e, began_ns, no_place, NULL))
            return true;
    return false;
}

static uint64_t look_at(struct event_triggers *w, const struct ring_image *i, struct user_events *u,
                        uint32_t ring, const struct ring_piece *p, const struct tick_clock *clock)
{
    const bool is_ticks = ring_reader_header(i->reader)->clock;
    uint64_t n = 0;
    uint32_t at = 0;
    bool bad;
    for (const struct ring_event *event; (event = ring_piece_event(p, &at, &bad));) {
        const uint32_t words = event->size & RING_SIZE_MASK;
        const struct judged *j = judged_of(w, u, event, words);
        const struct trace_event e = {.class = j ? j->class : NULL,
                                      .domain = "ust",
                                      .time_ns = is_ticks ? tick_clock_ns(clock, event->ticks) : event->ticks,
                                      .image_id = i->id,
                                      .pid = i->pid,
                                      .cpu = ring,
                                      .thread = event->thread,
                                      .flags = (uint16_t)(event->size >> RING_SIZE_BITS),
                                      .fields = (const unsigned char *)event + 8 * RING_EVENT_WORDS};
        n += j && is_trigger(w, j, &e, clock->first.ns);
    }
    return n;
}

uint64_t event_triggers_look(struct event_triggers *w, struct ring_image *i, struct user_events *u,
                             const struct tick_clock *clock)
{
    const struct ring_header *h = ring_reader_header(i->reader);
    uint64_t n = 0;
    for (uint32_t ring = 0; ring < ring_reader_rings(i->reader); ring++) {
        uint64_t left = LAPS_MOST * h->ring_bytes / h->packet_bytes;
        struct ring_piece p;
        for (int found; left && (found = ring_image_next(i, ring, &p)); left--) {
            if (found < 0)
                continue;
            w->counts.looked += p.n_events;
            w->counts.unseen += p.overwritten;
            n += look_at(w, i, u, ring, &p, clock);
        }
    }
    return n;
}

struct event_trigger_counts event_triggers_counts(const struct event_triggers *w)
{
    return w->counts;
}

bool event_triggers_unfit(const struct event_triggers *w, unsigned number, struct error *e)
{
    const struct standing *s = &w->standing[number];
    if (s->fits)
        return false;
    if (s->met)
        *e = s->why;
    else
        error_set(e, ENOENT, "no event %s was seen", w->t->events[number].name);
    return true;
}
