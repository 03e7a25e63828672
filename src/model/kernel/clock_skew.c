/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/kernel/clock_skew.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define SKEW_NS    100000u
#define NAME_BYTES 128u
#define FIRST      256u /* places for events; a power of two */

struct waiting {
    struct kmem_event event;
    bool done;
    char cache[NAME_BYTES], comm[NAME_BYTES];
    uint64_t stack[KMEM_EVENT_DEPTH_MAX];
};

struct clock_skew {
    struct kmem_accounts *to;
    struct waiting *ring; /* of `room` places */
    size_t first, n, room;
    uint64_t pairs;
};

struct clock_skew *clock_skew_new(struct kmem_accounts *to)
{
    struct clock_skew *s = mem_alloc(sizeof(*s));
    *s = (struct clock_skew){.to = to, .ring = mem_array(FIRST, sizeof(*s->ring)), .room = FIRST};
    return s;
}

void clock_skew_free(struct clock_skew *s)
{
    if (!s)
        return;
    free(s->ring);
    free(s);
}

static struct waiting *at(const struct clock_skew *s, size_t k)
{
    return &s->ring[(s->first + k) & (s->room - 1)];
}

/* Events hold pointers into their places. */
static void set_pointers(struct waiting *w)
{
    w->event.cache = w->cache;
    w->event.comm = w->event.comm ? w->comm : NULL;
    w->event.stack = w->event.stack ? w->stack : NULL;
}

static void grow(struct clock_skew *s)
{
    struct waiting *ring = mem_array(2 * s->room, sizeof(*ring));
    for (size_t k = 0; k < s->n; k++) {
        ring[k] = *at(s, k);
        set_pointers(&ring[k]);
    }
    free(s->ring);
    s->ring = ring;
    s->room *= 2;
    s->first = 0;
}

static void copy_name(char to[static NAME_BYTES], const char *from)
{
    const size_t len = strnlen(from, NAME_BYTES - 1);
    memcpy(to, from, len);
    to[len] = '\0';
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
    struct waiting *w = at(s, s->n++);
    w->event = *e;
    w->done = false;
    copy_name(w->cache, e->cache);
    if (e->comm)
        copy_name(w->comm, e->comm);
    if (e->stack)
        memcpy(w->stack, e->stack, e->depth * sizeof(*e->stack));
    set_pointers(w);
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
