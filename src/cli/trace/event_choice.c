/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/trace/event_choice.h"

#include <stdlib.h>

#include "base/hash_map.h"
#include "collect/trace/agent_events.h"
#include "collect/trace/block_filter.h"
#include "collect/trace/trace_sites.h"
#include "model/trace/early_frees.h"

struct event_choice {
    struct profile_filter *filter; /* NULL: all events */
    struct event_places *places;
    struct map stacks; /* from image and number of a stack in events to the stack */
    struct map by_image;
    struct VEC(struct event_blocks *) blocks; /* of each image */
    struct early_frees early;                 /* of the first reading */
    struct map early_ends; /* the frees whose allocations come later and are kept: struct end_key */
};

struct end_key {
    uint64_t image, address, time_ns;
};

struct event_choice *event_choice_new(struct profile_filter *f, struct event_places *places)
{
    struct event_choice *c = mem_alloc(sizeof(*c));
    const struct profile *p = event_places_profile(places);
    c->filter = f;
    c->places = places;
    vec_each (const struct profile_stack_number, k, &p->stack_numbers)
        map_put_u64(&c->stacks, (uint64_t)k->image << 32 | k->number, k->stack, NULL);
    return c;
}

void event_choice_again(struct event_choice *c)
{
    vec_each (struct event_blocks *, b, &c->blocks)
        event_blocks_free(*b);
    vec_release(&c->blocks);
    map_release(&c->by_image);
    c->early = (struct early_frees){.next = 0};
}

void event_choice_free(struct event_choice *c)
{
    if (!c)
        return;
    event_choice_again(c);
    map_release(&c->early_ends);
    map_release(&c->stacks);
    free(c);
}

static struct event_blocks *blocks_of(struct event_choice *c, uint64_t image_id)
{
    bool added;
    const size_t at = map_put_u64(&c->by_image, image_id, c->blocks.len, &added);
    if (added)
        *vec_push(&c->blocks) = event_blocks_new();
    return c->blocks.at[at];
}

/* What the profile knows of an event of the program. */
static void set_image(const struct event_choice *c, struct profile_filter_event *out,
                      const struct trace_event *e)
{
    const unsigned char *at;
    struct trace_sites *sites = event_places_sites(c->places);
    const uint64_t site = event_places_site(e);
    const struct event_field *f = trace_event_field(e, "stack", &at);
    out->image = trace_sites_image(sites, e);
    out->thread = trace_sites_thread(sites, e, out->image);
    if (site)
        out->location = trace_sites_location(sites, out->image, site);
    if (!site || !f || f->type != EVENT_UNSIGNED || trace_event_number(f, at) >= PROFILE_NONE)
        return;
    const size_t stack = map_get_u64(&c->stacks, (uint64_t)out->image << 32 | trace_event_number(f, at));
    if (stack != MAP_NONE)
        out->stack = (uint32_t)stack;
}

/* An event of the kernel has numbers only: of the programs that the process has executed, the last one counts. */
static void set_process(const struct profile *p, struct profile_filter_event *out, uint32_t thread)
{
    for (uint32_t i = 0; i < p->images.len; i++)
        if (p->images.at[i].pid == out->pid)
            out->image = i;
    for (uint32_t i = 0; i < p->threads.len; i++)
        if (p->threads.at[i].image == out->image && p->threads.at[i].tid == (int32_t)thread)
            out->thread = i;
}

static bool fits(const struct event_choice *c, const struct trace_event *e)
{
    const unsigned char *at;
    const struct event_field *size = trace_event_field(e, "size", &at);
    const struct profile *p = event_places_profile(c->places);
    struct profile_filter_event it = {.image = PROFILE_NONE,
                                      .thread = PROFILE_NONE,
                                      .stack = PROFILE_NONE,
                                      .location = PROFILE_NONE,
                                      .pid = e->image_id ? e->pid : (int32_t)trace_event_value(e, "pid"),
                                      .has_size = size && size->type == EVENT_BYTES};
    if (it.has_size)
        it.size_bytes = trace_event_number(size, at);
    if (e->image_id)
        set_image(c, &it, e);
    else
        set_process(p, &it, e->thread);
    return profile_filter_keeps_event(c->filter, p, &it);
}

/* Notes an end of a life without a block. Returns whether a later event is known to begin this life, and is kept. */
static bool comes_early(struct event_choice *c, const struct trace_event *e, const struct agent_event *a)
{
    const struct end_key key = {e->image_id, a->ptr, e->time_ns};
    early_frees_note_event(&c->early, e, a->ptr, a->id == EVENT_realloc_begin);
    return map_get(&c->early_ends, &key, sizeof(key)) != MAP_NONE;
}

/* The event is kept. If it begins the life of a block, remembers the end of this life that came before it. */
static void find_early(struct event_choice *c, const struct trace_event *e, const struct agent_event *a)
{
    struct early_free f;
    if (a->id != EVENT_malloc && a->id != EVENT_calloc && a->id != EVENT_memalign &&
        a->id != EVENT_realloc_end)
        return;
    if (a->id == EVENT_realloc_end && !a->ptr && a->size)
        early_frees_take_back(&c->early, e->image_id, e->thread);
    if (!early_frees_take(&c->early, e->image_id, a->ptr, e->cpu, e->time_ns, &f))
        return;
    const struct end_key key = {f.image, f.address, f.time_ns};
    map_put(&c->early_ends, &key, sizeof(key), 1, NULL);
}

bool event_choice_takes(struct event_choice *c, const struct trace_event *e)
{
    struct agent_event a;
    if (!c->filter)
        return true;
    const bool matches = fits(c, e);
    if (!agent_events_read(e, &a))
        return matches;
    struct event_blocks *blocks = blocks_of(c, e->image_id);
    const bool early = event_blocks_lacks(blocks, e) && comes_early(c, e, &a);
    const bool is_kept = event_blocks_keep(blocks, e, matches, early);
    if (is_kept)
        find_early(c, e, &a);
    return is_kept;
}
