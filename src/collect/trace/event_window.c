/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/trace/event_window.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/vec.h"
#include "collect/trace/agent_events.h"
#include "collect/trace/event_order.h"
#include "wire/event_schema.h"

#define SHARES  64u
#define SKEW_NS 1000u /* CPUs read the time stamp counter that much ahead of their loads */
/* More than a tick_clock errs. Of numbers that are times: more than come during a reading. */
#define AHEAD_NS 1000000u

_Static_assert(TRACE_EVENT_INTERPOLATED == RING_FLAG_INTERPOLATED, "the folder has the flags of the ring");

struct held {
    /* its words are the window's: first those that are kept, from `at` on those to judge */
    struct ring_piece p;
    uint32_t at;
    uint32_t kept_words, kept_events;
    uint64_t round; /* in which it was read */
};

struct window_ring {
    struct VEC(struct held) pieces;
    size_t taken;      /* of them */
    size_t judged;     /* the piece with the next event to judge */
    uint64_t unjudged; /* words */
    uint64_t number;
    uint64_t *given; /* the words of the piece that was taken last */
    struct ring_piece out;
    /* if times are interpolated: the first event without one, and the times of the events before it, and passed */
    size_t untimed_piece;
    uint32_t untimed_at;
    uint64_t timed_ns, passed_ns;
};

struct event_window {
    struct event_window_options o;
    struct event_blocks *blocks;
    struct event_order *order;                       /* NULL: it goes by time */
    const struct event_class *classes[EVENT_ID_OWN]; /* of the agent, by number */
    struct window_ring *rings;
    uint64_t bytes, dropped, ahead;
    uint64_t round, number;              /* of readings; of events that are ordered */
    struct VEC(struct ring_event *) run; /* events without times that follow each other */
    uint64_t until_ns, passed_ns;        /* of the last round; of the last event that was passed */
    uint32_t passed_ring;
    /* the latest time of the events that came since the last judgement, and of those before it */
    uint64_t newest_ns, before_ns;
};

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

static struct trace_event event_of(const struct event_window *w, uint32_t ring, const struct ring_event *e)
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
        const struct trace_event event = event_of(w, ring, e);
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

/* Returns the next event of the ring that is not judged, or NULL. */
static const struct ring_event *next_event(struct window_ring *r)
{
    while (r->judged < r->pieces.len && r->pieces.at[r->judged].at == r->pieces.at[r->judged].p.n_words)
        r->judged++;
    if (r->judged == r->pieces.len)
        return NULL;
    const struct held *h = &r->pieces.at[r->judged];
    return (const struct ring_event *)(h->p.words + h->at);
}

static void judge(struct event_window *w, uint32_t ring, const struct ring_event *e, uint64_t began_ns)
{
    struct held *h = &w->rings[ring].pieces.at[w->rings[ring].judged];
    const uint32_t words = e->size & RING_SIZE_MASK;
    const struct trace_event event = event_of(w, ring, e);
    h->at += words;
    w->rings[ring].unjudged -= words;
    if (w->o.filter && !event_filter_keeps(w->o.filter, w->blocks, &event, began_ns)) {
        w->dropped++;
        return;
    }
    memmove((uint64_t *)h->p.words + h->kept_words, e, words * sizeof(uint64_t));
    h->kept_words += words;
    h->kept_events++;
}

/* Returns the ring with the earliest event before *until, which becomes the time of the earliest one of the others. */
static uint32_t earliest(struct event_window *w, uint64_t *until)
{
    uint64_t first = *until;
    uint32_t found = w->o.rings;
    for (uint32_t ring = 0; ring < w->o.rings; ring++) {
        const struct ring_event *e = next_event(&w->rings[ring]);
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
    struct ring_event *e = (struct ring_event *)next_event(&w->rings[ring]);
    if (!e)
        return false;
    const bool settled = is_end || w->rings[ring].pieces.at[w->rings[ring].judged].round < w->round;
    const struct trace_event event = event_of(w, ring, e);
    if (event_order_turn(w->order, &event, settled) < least)
        return false;
    event_order_pass(w->order, &event);
    e->ticks = w->o.base_ns + ++w->number;
    judge(w, ring, e, began_ns);
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
        if (!next_event(&w->rings[ring]))
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

/* ---- events of which some have times ---- */

/* Spreads the events without times evenly between two times. */
static void spread(struct event_window *w, uint64_t from_ns, uint64_t to_ns)
{
    const uint64_t gap_ns = to_ns > from_ns ? to_ns - from_ns : 0;
    for (size_t k = 0; k < w->run.len; k++) {
        struct ring_event *e = w->run.at[k];
        e->ticks = from_ns + (uint64_t)((double)gap_ns * (double)(k + 1) / (double)(w->run.len + 1));
        e->size |= RING_FLAG_INTERPOLATED << RING_SIZE_BITS;
    }
    w->run.len = 0;
}

/* Gives times to the ring's events. Those behind the last time happened before the reading, or a little later. */
static void interpolate(struct event_window *w, struct window_ring *r)
{
    for (; r->untimed_piece < r->pieces.len; r->untimed_piece++, r->untimed_at = 0) {
        const struct ring_piece *p = &r->pieces.at[r->untimed_piece].p;
        bool bad;
        for (struct ring_event *e; (e = (struct ring_event *)ring_piece_event(p, &r->untimed_at, &bad));) {
            if (!e->ticks) {
                *vec_push(&w->run) = e;
                continue;
            }
            spread(w, r->timed_ns ? r->timed_ns : e->ticks, e->ticks);
            e->ticks = e->ticks > r->timed_ns ? e->ticks : r->timed_ns;
            r->timed_ns = e->ticks;
        }
    }
    spread(w, r->timed_ns ? r->timed_ns : w->until_ns, w->until_ns);
    r->timed_ns = w->until_ns > r->timed_ns ? w->until_ns : r->timed_ns;
}

static bool is_interpolated(const struct ring_event *e)
{
    return e->size >> RING_SIZE_BITS & RING_FLAG_INTERPOLATED;
}

/* The ring's next event did not happen before the time that this returns. */
static uint64_t earliest_of(const struct window_ring *r, const struct ring_event *e)
{
    return is_interpolated(e) ? r->passed_ns : e->ticks - SKEW_NS;
}

/* The event at word `at` of a piece did not happen after the time that this returns: that of the next one with a time.
 */
static uint64_t latest_of(const struct event_window *w, const struct window_ring *r, size_t piece,
                          uint32_t at)
{
    bool bad;
    for (; piece < r->pieces.len; piece++, at = 0)
        for (const struct ring_event *e; (e = ring_piece_event(&r->pieces.at[piece].p, &at, &bad));)
            if (!is_interpolated(e))
                return e->ticks + SKEW_NS;
    return w->until_ns;
}

static uint64_t latest_of_next(const struct event_window *w, const struct window_ring *r)
{
    return latest_of(w, r, r->judged, r->pieces.at[r->judged].at);
}

/* Returns whether the ring has an event that can take the place of `event`, which happened before `latest_ns`, and has
 * to happen earlier. */
static bool has_rival(const struct event_window *w, uint32_t ring, const struct trace_event *event,
                      uint64_t latest_ns)
{
    const struct window_ring *r = &w->rings[ring];
    for (size_t piece = r->judged; piece < r->pieces.len; piece++) {
        uint32_t at = piece == r->judged ? r->pieces.at[piece].at : 0, before = at;
        bool bad;
        for (const struct ring_event *e; (e = ring_piece_event(&r->pieces.at[piece].p, &at, &bad));
             before = at) {
            if (!is_interpolated(e) && e->ticks + SKEW_NS >= latest_ns)
                return false;
            const struct trace_event other = event_of(w, ring, e);
            if (event_order_are_rivals(event, &other))
                return latest_of(w, r, piece, before) < latest_ns;
        }
    }
    return false;
}

static bool is_settled(const struct event_window *w, const struct window_ring *r, bool is_end)
{
    return is_end || r->pieces.at[r->judged].round < w->round;
}

/* Makes the ring's next event the next one of all. Its time is not below those before, and not above `most_ns`, if it
 * may be chosen. Events of different rings have different times: a reader of the trace sees this order. */
static void pass(struct event_window *w, uint32_t ring, uint64_t most_ns, uint64_t began_ns)
{
    struct window_ring *r = &w->rings[ring];
    struct ring_event *e = (struct ring_event *)next_event(r);
    const struct trace_event event = event_of(w, ring, e);
    const uint64_t least_ns = w->passed_ns + (ring != w->passed_ring);
    if (is_interpolated(e) && e->ticks > most_ns)
        e->ticks = most_ns;
    if (e->ticks < least_ns) {
        e->ticks = least_ns;
        e->size |= is_interpolated(e) ? 0 : RING_FLAG_LATER << RING_SIZE_BITS;
    }
    w->passed_ns = r->passed_ns = e->ticks;
    w->passed_ring = ring;
    event_order_pass(w->order, &event);
    judge(w, ring, e, began_ns);
}

enum before { NONE_BEFORE, ONE_PASSED, NOT_READ_YET };

/* The next event of `ring` waits for one of another ring: passes the earliest that may have been before it. `rivals`:
 * of the rings alone that have an event which has to take its place. */
static enum before pass_before(struct event_window *w, uint32_t ring, bool rivals, bool is_end,
                               uint64_t began_ns)
{
    const struct trace_event waits = event_of(w, ring, next_event(&w->rings[ring]));
    const uint64_t latest_ns = latest_of_next(w, &w->rings[ring]), now_ns = waits.time_ns;
    uint32_t found = w->o.rings;
    uint64_t first_ns = UINT64_MAX;
    for (uint32_t k = 0; k < w->o.rings; k++) {
        struct window_ring *r = &w->rings[k];
        const struct ring_event *e = next_event(r);
        if (k == ring || !e || e->ticks >= first_ns || earliest_of(r, e) > latest_ns ||
            (rivals && !has_rival(w, k, &waits, latest_ns)))
            continue;
        const struct trace_event event = event_of(w, k, e);
        if (event_order_turn(w->order, &event, true) == EVENT_ORDER_NOT_YET)
            continue;
        found = k;
        first_ns = e->ticks;
    }
    if (found == w->o.rings)
        return NONE_BEFORE;
    if (!is_settled(w, &w->rings[found], is_end))
        return NOT_READ_YET;
    pass(w, found, now_ns, began_ns);
    return ONE_PASSED;
}

/* By time, but an event that waits for one that may have been before it lets that one pass. */
static void judge_interpolated(struct event_window *w, bool is_end, uint64_t began_ns)
{
    for (uint32_t ring = 0; ring < w->o.rings; ring++)
        interpolate(w, &w->rings[ring]);
    for (;;) {
        uint64_t until = UINT64_MAX;
        const uint32_t ring = earliest(w, &until);
        if (ring == w->o.rings || !is_settled(w, &w->rings[ring], is_end))
            break;
        const struct trace_event event = event_of(w, ring, next_event(&w->rings[ring]));
        const bool waits = event_order_turn(w->order, &event, true) == EVENT_ORDER_NOT_YET;
        enum before before = NONE_BEFORE;
        if (waits || event_order_has_rivals(w->order, &event))
            before = pass_before(w, ring, !waits, is_end, began_ns);
        if (before == NOT_READ_YET)
            break;
        if (before == NONE_BEFORE)
            pass(w, ring, UINT64_MAX, began_ns);
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
        judge_interpolated(w, until_ns == UINT64_MAX, began_ns);
        return;
    }
    if (w->order) {
        judge_ordered(w, until_ns == UINT64_MAX, began_ns);
        return;
    }
    if (until_ns <= w->before_ns)
        until_ns = w->before_ns == UINT64_MAX ? UINT64_MAX : w->before_ns + 1;
    w->before_ns = w->newest_ns;
    w->newest_ns = 0;
    for (;;) {
        uint64_t until = until_ns;
        const uint32_t ring = earliest(w, &until);
        if (ring == w->o.rings)
            return;
        const struct ring_event *e = next_event(&w->rings[ring]);
        do
            judge(w, ring, e, began_ns);
        while ((e = next_event(&w->rings[ring])) && e->ticks < until);
    }
}

struct ring_piece *event_window_take(struct event_window *w, uint32_t ring)
{
    struct window_ring *r = &w->rings[ring];
    next_event(r);
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
    if (r->taken == r->pieces.len)
        r->pieces.len = r->taken = r->judged = r->untimed_piece = 0;
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
