/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/kernel/clock_skew.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/kernel/event_texts.h"

#define SKEW_NS 100000u
#define FIRST   256u /* places for events; a power of two */

struct waiting {
    struct kmem_event event;
    bool done;
};

/* Of most traces no event has a stack; then what is copied of an event stays small. */
struct stack {
    uint64_t callers[KMEM_EVENT_DEPTH_MAX];
};

struct clock_skew {
    struct kmem_accounts *to;
    struct event_texts texts; /* the names that events point to */
    struct waiting *ring;     /* of `room` places */
    struct stack *stacks;     /* of the same places; NULL: no event had one */
    size_t first, n, room;
    uint64_t pairs;
};

struct clock_skew *clock_skew_new(struct kmem_accounts *to)
{
    struct clock_skew *s = mem_alloc(sizeof(*s));
    *s = (struct clock_skew){.to = to, .ring = mem_array(FIRST, sizeof(*s->ring)), .room = FIRST};
    event_texts_init(&s->texts);
    return s;
}

void clock_skew_free(struct clock_skew *s)
{
    if (!s)
        return;
    event_texts_release(&s->texts);
    free(s->stacks);
    free(s->ring);
    free(s);
}

static size_t place(const struct clock_skew *s, size_t k)
{
    return (s->first + k) & (s->room - 1);
}

static struct waiting *at(const struct clock_skew *s, size_t k)
{
    return &s->ring[place(s, k)];
}

static void grow(struct clock_skew *s)
{
    struct waiting *ring = mem_array(2 * s->room, sizeof(*ring));
    struct stack *stacks = s->stacks ? mem_array(2 * s->room, sizeof(*stacks)) : NULL;
    for (size_t k = 0; k < s->n; k++) {
        ring[k] = *at(s, k);
        if (!ring[k].event.stack)
            continue;
        stacks[k] = s->stacks[place(s, k)];
        ring[k].event.stack = stacks[k].callers;
    }
    free(s->ring);
    free(s->stacks);
    s->ring = ring;
    s->stacks = stacks;
    s->room *= 2;
    s->first = 0;
}

static const uint64_t *copy_stack(struct clock_skew *s, size_t to, const struct kmem_event *e)
{
    if (!s->stacks)
        s->stacks = mem_array(s->room, sizeof(*s->stacks));
    memcpy(s->stacks[to].callers, e->stack, e->depth * sizeof(*e->stack));
    return s->stacks[to].callers;
}

/* The next event of the object, if it is the other kind of event, by another CPU; NULL: it is not. */
static struct waiting *find_partner(const struct clock_skew *s, const struct kmem_event *e)
{
    for (size_t k = 1; k < s->n; k++) {
        struct waiting *w = at(s, k);
        if (!w->done && w->event.address == e->address)
            return w->event.kind != e->kind && w->event.cpu != e->cpu &&
                           w->event.time_ns - e->time_ns < SKEW_NS
                       ? w
                       : NULL;
    }
    return NULL;
}

/* A free of what is not live, and an allocation of what is: the event that explains it may come behind it. */
static void account_first(struct clock_skew *s)
{
    struct waiting *w = at(s, 0);
    const struct kmem_event *e = &w->event;
    if (!w->done) {
        const bool odd = e->address > KMEM_EVENT_NO_OBJECT &&
                         kmem_accounts_is_live(s->to, e->address) == (e->kind == KMEM_EVENT_ALLOC);
        struct waiting *partner = odd ? find_partner(s, e) : NULL;
        if (partner) {
            partner->done = true;
            partner->event.time_ns = e->time_ns;
            kmem_accounts_add(s->to, &partner->event);
            s->pairs++;
        }
        kmem_accounts_add(s->to, e);
    }
    s->first = (s->first + 1) & (s->room - 1);
    s->n--;
}

void clock_skew_add(struct clock_skew *s, const struct kmem_event *e)
{
    while (s->n && e->time_ns - at(s, 0)->event.time_ns >= SKEW_NS)
        account_first(s);
    if (s->n == s->room)
        grow(s);
    const size_t to = place(s, s->n++);
    struct kmem_event *copy = &s->ring[to].event;
    s->ring[to].done = false;
    *copy = *e;
    copy->cache = event_texts_text(&s->texts, event_texts_number(&s->texts, e->cache));
    if (e->comm)
        copy->comm = event_texts_text(&s->texts, event_texts_comm(&s->texts, e->comm));
    if (e->stack)
        copy->stack = copy_stack(s, to, e);
}

void clock_skew_end(struct clock_skew *s)
{
    while (s->n)
        account_first(s);
}

uint64_t clock_skew_pairs(const struct clock_skew *s)
{
    return s->pairs;
}
