/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/trace/event_order.h"

#include <stdlib.h>

#include "base/address_table.h"
#include "base/hash_map.h"
#include "base/vec.h"
#include "wire/event_schema.h"

/* What is known of an address, or expected. */
struct place {
    uint64_t address;
    struct expected {
        uint32_t n, ring;
        bool several; /* rings have them */
    } births, deaths; /* events that were read, and have no place in the order yet */
    uint32_t last;    /* the ring of the last event that has a place */
    bool live;
};
#define BYTES sizeof(struct place)

struct event_order {
    struct address_table places;
    struct map thread_numbers;
    struct VEC(uint64_t) moving; /* by number: the block that the thread reallocates; 0: none */
    uint64_t ambiguous;
};

enum kind { OTHER, BIRTH, DEATH };

struct event_order *event_order_new(void)
{
    struct event_order *o = mem_alloc(sizeof(*o));
    address_table_init(&o->places, BYTES);
    return o;
}

void event_order_free(struct event_order *o)
{
    if (!o)
        return;
    address_table_release(&o->places);
    map_release(&o->thread_numbers);
    vec_release(&o->moving);
    free(o);
}

static uint64_t word(const struct trace_event *e, int n)
{
    uint64_t value;
    memcpy(&value, e->fields + 8 * n, sizeof(value));
    return value;
}

/* Sets *address to that of the block whose life begins or ends. */
static enum kind kind_of(const struct trace_event *e, uint64_t *address)
{
    switch (event_id_plain(e->class->id)) {
    case EVENT_malloc:
    case EVENT_calloc:
    case EVENT_memalign:
    case EVENT_realloc_end:
        *address = word(e, 0);
        return *address ? BIRTH : OTHER;
    case EVENT_free:
    case EVENT_realloc_begin:
        *address = word(e, 0);
        return *address ? DEATH : OTHER;
    default:
        return OTHER;
    }
}

static struct place *place_of(struct event_order *o, uint64_t address)
{
    struct place *p = address_table_find(&o->places, BYTES, address);
    if (!p->address) {
        address_table_add(&o->places, BYTES, &(struct place){.address = address});
        p = address_table_find(&o->places, BYTES, address);
    }
    return p;
}

void event_order_expect(struct event_order *o, const struct trace_event *e)
{
    uint64_t address;
    const enum kind kind = kind_of(e, &address);
    if (kind == OTHER)
        return;
    struct place *p = place_of(o, address);
    struct expected *x = kind == DEATH ? &p->deaths : &p->births;
    x->several |= x->n && x->ring != e->cpu;
    x->ring = e->cpu;
    x->n++;
}

enum event_order_turn event_order_turn(const struct event_order *o, const struct trace_event *e, bool settled)
{
    uint64_t address;
    const enum kind kind = kind_of(e, &address);
    if (kind == OTHER)
        return EVENT_ORDER_NOW;
    const struct place *p = address_table_find(&o->places, BYTES, address);
    if (p->live == (kind == DEATH)) {
        const bool is_alone = settled && !(kind == DEATH ? p->deaths.several : p->births.several);
        return p->last != e->cpu || is_alone ? EVENT_ORDER_NOW
               : settled                     ? EVENT_ORDER_LATER
                                             : EVENT_ORDER_NOT_YET;
    }
    /* the other event was lost, or is from before the trace */
    return settled && !(kind == DEATH ? p->births.n : p->deaths.n) ? EVENT_ORDER_NOW : EVENT_ORDER_NOT_YET;
}

bool event_order_has_rivals(const struct event_order *o, const struct trace_event *e)
{
    uint64_t address;
    const enum kind kind = kind_of(e, &address);
    if (kind == OTHER)
        return false;
    const struct place *p = address_table_find(&o->places, BYTES, address);
    return kind == DEATH ? p->deaths.several : p->births.several;
}

bool event_order_are_rivals(const struct trace_event *a, const struct trace_event *b)
{
    uint64_t one, other;
    const enum kind kind = kind_of(a, &one);
    return kind != OTHER && kind_of(b, &other) == kind && one == other;
}

bool event_order_begins_at(const struct trace_event *e, uint64_t address)
{
    uint64_t at;
    return kind_of(e, &at) == BIRTH && at == address;
}

static uint64_t *moving_of(struct event_order *o, uint32_t thread)
{
    bool added;
    const size_t number = map_put_u64(&o->thread_numbers, thread, o->moving.len, &added);
    if (added)
        *vec_push(&o->moving) = 0;
    return &o->moving.at[number];
}

/* A realloc() that fails leaves the old block alone. */
static void note_realloc(struct event_order *o, const struct trace_event *e)
{
    const enum event_id id = event_id_plain(e->class->id);
    if (id == EVENT_realloc_begin) {
        *moving_of(o, e->thread) = word(e, 0);
    } else if (id == EVENT_realloc_end) {
        uint64_t *moving = moving_of(o, e->thread);
        if (*moving && !word(e, 0) && word(e, 1)) {
            struct place *p = place_of(o, *moving);
            o->ambiguous += p->live;
            p->live = true;
        }
        *moving = 0;
    }
}

void event_order_pass(struct event_order *o, const struct trace_event *e)
{
    uint64_t address;
    const enum kind kind = kind_of(e, &address);
    if (kind != OTHER) {
        struct place *p = place_of(o, address);
        struct expected *x = kind == DEATH ? &p->deaths : &p->births;
        o->ambiguous += p->live == (kind == BIRTH) || (kind == BIRTH && x->several);
        x->n--;
        x->several &= x->n > 0;
        p->last = e->cpu;
        p->live = kind == BIRTH;
        if (!p->live && !p->births.n && !p->deaths.n)
            address_table_remove(&o->places, BYTES, p);
    }
    note_realloc(o, e);
}

uint64_t event_order_ambiguous(const struct event_order *o)
{
    return o->ambiguous;
}
