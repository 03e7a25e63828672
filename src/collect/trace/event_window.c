/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/trace/event_window_parts.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/vec.h"
#include "collect/trace/agent_events.h"
#include "collect/trace/event_order.h"
#include "model/trace/early_frees.h"
#include "wire/event_schema.h"

#define SHARES 64u
/* More than a tick_clock errs. Of numbers that are times: more than come during a reading. */
#define AHEAD_NS 1000000u

_Static_assert(TRACE_EVENT_INTERPOLATED == RING_FLAG_INTERPOLATED, "the folder has the flags of the ring");

struct event_window *event_window_new(const struct event_window_options *o)
{
    struct event_window *w = mem_alloc(sizeof(*w));
    uint32_t n;
    const struct event_class *classes = agent_events(&n);
    w->o = *o;
    w->blocks = event_blocks_new();
    w->order = o->orders || o->interpolates ? event_order_new() : NULL;
    w->rings = mem_array(o->rings, sizeof(*w->rings));
    for (uint32_t i = 0; i < n; i++)
        w->classes[classes[i].id] = &classes[i];
    return w;
}

void event_window_free(struct event_window *w)
{
    if (!w)
        return;
    for (uint32_t ring = 0; ring < w->o.rings; ring++) {
        struct window_ring *r = &w->rings[ring];
        for (size_t i = r->taken; i < r->pieces.len; i++)
            free((uint64_t *)r->pieces.at[i].p.words);
        vec_release(&r->pieces);
        free(r->given);
    }
    free(w->rings);
    vec_release(&w->run);
    event_blocks_free(w->blocks);
    event_order_free(w->order);
    free(w);
}

static const struct event_class *class_of(const struct event_window *w, uint16_t id)
{
    return id < EVENT_ID_OWN ? w->classes[id] : user_classes_of_trace(w->o.user, id);
}

/* Returns whether each event is of a known class, and has all its fields. */
static bool is_whole(const struct event_window *w, const struct ring_piece *p)
{
    uint32_t at = 0;
    bool bad;
    for (const struct ring_event *e; (e = ring_piece_event(p, &at, &bad));) {
        const struct event_class *c = class_of(w, e->id);
        if (!c || (e->size & RING_SIZE_MASK) != RING_EVENT_WORDS + (event_class_bytes(c) + 7) / 8)
            return false;
    }
    return !bad;
}

struct trace_event event_window_event(const struct event_window *w, uint32_t ring, const struct ring_event *e)
{
    return (struct trace_event){.class = class_of(w, e->id),
                                .domain = "ust",
                                .time_ns = e->ticks,
                                .image_id = w->o.image_id,
                                .pid = w->o.pid,
                                .cpu = ring,
                                .thread = e->thread,
                                .fields = (const unsigned char *)(e + 1)};
}

static void prepare(struct event_window *w, uint32_t ring, const struct ring_piece *p,
                    const struct tick_clock *clock, uint64_t read_ns)
{
    uint32_t at = 0;
    bool bad;
    for (const struct ring_event *e; (e = ring_piece_event(p, &at, &bad));) {
        const struct trace_event event = event_window_event(w, ring, e);
        if (w->order)
            event_order_expect(w->order, &event);
        if (w->o.interpolates && !e->ticks)
            continue;
        const uint64_t ns = clock ? tick_clock_ns(clock, e->ticks) : e->ticks + w->o.base_ns;
        ((struct ring_event *)e)->ticks = ns;
        w->ahead += !w->order && ns > read_ns && ns - read_ns > AHEAD_NS;
        if (ns > w->newest_ns)
            w->newest_ns = ns;
    }
}

int event_window_put(struct event_window *w, uint32_t ring, const struct ring_piece *p,
                     const struct tick_clock *clock, uint64_t read_ns)
{
    if (!is_whole(w, p))
        return -EBADMSG;
    struct held *h = vec_push(&w->rings[ring].pieces);
    uint64_t *words = mem_array(p->n_words, sizeof(*words));
    memcpy(words, p->words, p->n_words * sizeof(*words));
    *h = (struct held){.p = *p, .round = w->round};
    h->p.words = words;
    prepare(w, ring, &h->p, clock, read_ns);
    w->rings[ring].unjudged += p->n_words;
    w->bytes += 8ull * p->n_words;
    return 0;
}

const struct ring_event *event_window_next(struct window_ring *r)
{
    while (r->judged < r->pieces.len && r->pieces.at[r->judged].at == r->pieces.at[r->judged].p.n_words)
        r->judged++;
    if (r->judged == r->pieces.len)
        return NULL;
    const struct held *h = &r->pieces.at[r->judged];
    return (const struct ring_event *)(h->p.words + h->at);
}

/* Sets *birth to the event of another ring with which a block's life begins at the address, less than EARLY_FREES_NS
 * after that time. Returns false if there is none. */
static bool find_birth(const struct event_window *w, uint32_t ring, uint64_t address, uint64_t time_ns,
                       struct trace_event *birth)
{
    bool bad;
    for (uint32_t other = 0; other < w->o.rings; other++) {
        const struct window_ring *r = &w->rings[other];
        for (size_t piece = r->judged; other != ring && piece < r->pieces.len; piece++) {
            uint32_t at = r->pieces.at[piece].at;
            const struct ring_event *e;
            while ((e = ring_piece_event(&r->pieces.at[piece].p, &at, &bad)) &&
                   e->ticks < time_ns + EARLY_FREES_NS) {
                *birth = event_window_event(w, other, e);
                if (event_order_begins_at(birth, address))
                    return true;
            }
            if (e)
                break;
        }
    }
    return false;
}

static bool keeps(struct event_window *w, uint32_t ring, const struct trace_event *e, uint64_t began_ns)
{
    struct trace_event birth;
    const uint64_t address = w->o.has_ticks ? event_blocks_lacks(w->blocks, e) : 0;
    const bool found = address && find_birth(w, ring, address, e->time_ns, &birth);
    return event_filter_keeps(w->o.filter, w->blocks, e, found ? &birth : NULL, began_ns);
}

void event_window_take_next(struct event_window *w, uint32_t ring, const struct ring_event *e,
                            uint64_t began_ns)
{
    struct held *h = &w->rings[ring].pieces.at[w->rings[ring].judged];
    const uint32_t words = e->size & RING_SIZE_MASK;
    const struct trace_event event = event_window_event(w, ring, e);
    h->at += words;
    w->rings[ring].unjudged -= words;
    if (w->o.filter && !keeps(w, ring, &event, began_ns)) {
        w->dropped++;
        return;
    }
    memmove((uint64_t *)h->p.words + h->kept_words, e, words * sizeof(uint64_t));
    h->kept_words += words;
    h->kept_events++;
}

uint32_t event_window_earliest(struct event_window *w, uint64_t *until)
{
    uint64_t first = *until;
    uint32_t found = w->o.rings;
    for (uint32_t ring = 0; ring < w->o.rings; ring++) {
        const struct ring_event *e = event_window_next(&w->rings[ring]);
        if (e && e->ticks < first) {
            *until = first;
            first = e->ticks;
            found = ring;
        } else if (e && e->ticks < *until) {
            *until = e->ticks;
        }
    }
    return found;
}

/* Judges the ring's next event if its turn is `least` or better. */
static bool judge_next(struct event_window *w, uint32_t ring, bool is_end, enum event_order_turn least,
                       uint64_t began_ns)
{
    struct ring_event *e = (struct ring_event *)event_window_next(&w->rings[ring]);
    if (!e)
        return false;
    const bool settled = is_end || w->rings[ring].pieces.at[w->rings[ring].judged].round < w->round;
    const struct trace_event event = event_window_event(w, ring, e);
    if (event_order_turn(w->order, &event, settled) < least)
        return false;
    event_order_pass(w->order, &event);
    e->ticks = w->o.base_ns + ++w->number;
    event_window_take_next(w, ring, e, began_ns);
    return true;
}

/* Events that wait for each other are of no use: one has to be judged. False: there may be more to read first. */
static bool judge_stuck(struct event_window *w, bool is_end, uint64_t began_ns)
{
    uint32_t found = w->o.rings;
    for (uint32_t ring = 0; ring < w->o.rings; ring++)
        if (judge_next(w, ring, is_end, EVENT_ORDER_LATER, began_ns))
            return true;
    for (uint32_t ring = w->o.rings; ring-- > 0;) {
        if (!event_window_next(&w->rings[ring]))
            continue;
        if (!is_end && w->rings[ring].pieces.at[w->rings[ring].judged].round == w->round)
            return false;
        found = ring;
    }
    return found < w->o.rings && judge_next(w, found, is_end, EVENT_ORDER_NOT_YET, began_ns);
}

/* Takes an equal share of what each ring has, again and again: all were filled in the same time. */
static void judge_shares(struct event_window *w, bool is_end, uint64_t began_ns)
{
    for (uint32_t left = SHARES; left; left--)
        for (uint32_t ring = 0; ring < w->o.rings; ring++) {
            const uint64_t *unjudged = &w->rings[ring].unjudged, end = *unjudged - *unjudged / left;
            while (*unjudged > end && judge_next(w, ring, is_end, EVENT_ORDER_NOW, began_ns))
                ;
        }
}

static void judge_ordered(struct event_window *w, bool is_end, uint64_t began_ns)
{
    judge_shares(w, is_end, began_ns);
    for (bool any = true; any;) {
        any = false;
        for (uint32_t ring = 0; ring < w->o.rings; ring++)
            while (judge_next(w, ring, is_end, EVENT_ORDER_NOW, began_ns))
                any = true;
        any = any || judge_stuck(w, is_end, began_ns);
    }
    w->round++;
}

/*
 * Events may have times in the future: the program's clock is another one, or it has written them itself. None is held
 * until then. By the program's own clock, what is no later than an event of an earlier round happened before this round
 * began, and was read.
 */
void event_window_judge(struct event_window *w, uint64_t until_ns, uint64_t began_ns)
{
    w->until_ns = until_ns < UINT64_MAX ? until_ns : w->until_ns;
    if (w->o.interpolates) {
        event_window_interpolate(w, until_ns == UINT64_MAX, began_ns);
        return;
    }
    if (w->order) {
        judge_ordered(w, until_ns == UINT64_MAX, began_ns);
        return;
    }
    if (until_ns <= w->before_ns)
        until_ns = w->before_ns == UINT64_MAX ? UINT64_MAX : w->before_ns + 1;
    else if (w->o.has_ticks && until_ns < UINT64_MAX && until_ns > EARLY_FREES_NS)
        until_ns -= EARLY_FREES_NS; /* find_birth() looks at later events */
    w->before_ns = w->newest_ns;
    w->newest_ns = 0;
    for (;;) {
        uint64_t until = until_ns;
        const uint32_t ring = event_window_earliest(w, &until);
        if (ring == w->o.rings)
            return;
        const struct ring_event *e = event_window_next(&w->rings[ring]);
        do
            event_window_take_next(w, ring, e, began_ns);
        while ((e = event_window_next(&w->rings[ring])) && e->ticks < until);
    }
}

/* Under load a ring is never empty: the list must not grow for as long as that lasts. */
static void forget_taken(struct window_ring *r)
{
    const size_t left = r->pieces.len - r->taken;
    if (!r->taken || r->taken < left)
        return;
    memmove(r->pieces.at, r->pieces.at + r->taken, left * sizeof(*r->pieces.at));
    r->pieces.len = left;
    r->judged -= r->taken;
    r->untimed_piece -= r->untimed_piece < r->taken ? r->untimed_piece : r->taken;
    r->taken = 0;
}

struct ring_piece *event_window_take(struct event_window *w, uint32_t ring)
{
    struct window_ring *r = &w->rings[ring];
    event_window_next(r);
    while (r->taken < r->judged) {
        const struct held *h = &r->pieces.at[r->taken++];
        free(r->given);
        r->given = (uint64_t *)h->p.words;
        w->bytes -= 8ull * h->p.n_words;
        if (!h->kept_events)
            continue;
        r->out = h->p;
        r->out.n_words = h->kept_words;
        r->out.n_events = h->kept_events;
        r->out.number = ++r->number;
        return &r->out;
    }
    forget_taken(r);
    return NULL;
}

uint64_t event_window_bytes(const struct event_window *w)
{
    return w->bytes;
}

uint64_t event_window_dropped(const struct event_window *w)
{
    return w->dropped;
}

uint64_t event_window_ahead(const struct event_window *w)
{
    return w->ahead;
}

uint64_t event_window_ambiguous(const struct event_window *w)
{
    return w->order ? event_order_ambiguous(w->order) : 0;
}
