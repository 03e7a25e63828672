/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/trace/order_doubts.h"

#include <stdlib.h>

#include "base/vec.h"
#include "collect/trace/agent_events.h"
#include "collect/trace/block_filter.h"
#include "collect/trace/tick_clock.h"

struct image {
    uint64_t id;
    struct event_blocks *blocks;
};

/* The latest event of a CPU, of the program or of the kernel. */
struct latest {
    uint64_t source, time_ns;
    bool known;
};

struct order_doubts {
    uint64_t bound_ns;                             /* 0: the clock is good */
    bool follows;                                  /* blocks: the events have times of the CPUs' counters */
    const struct event_class *known[EVENT_ID_OWN]; /* classes that agent_events_read() reads, by number */
    struct VEC(struct image) images;
    size_t last;                  /* the image of the last event */
    struct latest newest, others; /* `others`: the latest event of any other source than that of `newest` */
};

struct order_doubts *order_doubts_new(const struct event_folder *t)
{
    struct order_doubts *d = mem_alloc(sizeof(*d));
    const uint64_t residual_ns = event_folder_residual_ns(t);
    d->bound_ns = residual_ns > TICK_CLOCK_BOUND_NS ? residual_ns : 0;
    d->follows = !event_folder_clock(t);
    return d;
}

void order_doubts_free(struct order_doubts *d)
{
    if (!d)
        return;
    vec_each (struct image, i, &d->images)
        event_blocks_free(i->blocks);
    vec_release(&d->images);
    free(d);
}

static bool is_near(struct order_doubts *d, const struct trace_event *e)
{
    const uint64_t source = (uint64_t)!e->image_id << 32 | e->cpu;
    if (d->newest.source != source)
        d->others = d->newest;
    d->newest = (struct latest){source, e->time_ns, true};
    return d->others.known && e->time_ns - d->others.time_ns < d->bound_ns;
}

static struct event_blocks *blocks_of(struct order_doubts *d, uint64_t image_id)
{
    if (d->last < d->images.len && d->images.at[d->last].id == image_id)
        return d->images.at[d->last].blocks;
    for (d->last = 0; d->last < d->images.len; d->last++)
        if (d->images.at[d->last].id == image_id)
            return d->images.at[d->last].blocks;
    *vec_push(&d->images) = (struct image){image_id, event_blocks_new()};
    return d->images.at[d->last].blocks;
}

/* Asks agent_events_read() once for each class. */
static bool is_of_agent(struct order_doubts *d, const struct trace_event *e)
{
    struct agent_event ignored;
    const uint16_t id = e->class->id;
    if (id < EVENT_ID_OWN && d->known[id] != e->class && agent_events_read(e, &ignored))
        d->known[id] = e->class;
    return id < EVENT_ID_OWN && d->known[id] == e->class;
}

bool order_doubts_take(struct order_doubts *d, const struct trace_event *e)
{
    const bool near = d->bound_ns && is_near(d, e);
    return (d->follows && is_of_agent(d, e) && event_blocks_follow(blocks_of(d, e->image_id), e)) || near;
}
