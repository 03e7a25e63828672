/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/trace/block_filter.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/address_table.h"
#include "base/hash_map.h"
#include "base/vec.h"
#include "collect/trace/agent_events.h"
#include "model/trace/early_frees.h"
#include "model/trace/event_query.h"
#include "wire/event_schema.h"

#define BYTES sizeof(uint64_t) /* of a live block: its address */

struct event_filter {
    struct event_query *query;
};

struct thread {
    uint64_t moving; /* the kept block that it reallocates; 0: none */
    bool freed;      /* the block that it freed last was kept */
};

struct event_blocks {
    struct address_table live;
    struct map thread_numbers;
    struct VEC(struct thread) threads; /* by number */
    struct early_frees early;          /* kept ends of lives that begin with a later event */
};

int event_filter_new(struct event_filter **out, const char *query, struct error *e)
{
    struct event_filter *f = *out = mem_alloc(sizeof(*f));
    uint32_t n;
    const struct event_class *classes = agent_events(&n), **each = mem_array(n, sizeof(*each));
    for (uint32_t i = 0; i < n; i++)
        each[i] = &classes[i];
    int bad = event_query_new(&f->query, query, each, n, e);
    free(each);
    if (!bad && event_query_uses_place(f->query))
        bad = error_set(
            e, EINVAL,
            "func, file and module are known only when the trace has ended: use allium events DIR --where");
    return bad;
}

bool event_filter_uses_time(const struct event_filter *f)
{
    return event_query_uses_time(f->query);
}

/* In the agent, numbers are not negative. */
static void add_ranges(const struct event_filter *f, const char *field, const char *option, struct buf *out)
{
    struct query_range ranges[QUERY_RANGES_MAX];
    const size_t n = event_query_ranges(f->query, field, ranges);
    bool any = false;
    if (n == 1 && ranges[0].low <= 0 && ranges[0].high == INT64_MAX)
        return;
    buf_addstr(out, option);
    for (size_t i = 0; i < n; i++)
        if (ranges[i].high >= 0) {
            buf_printf(out, "%s%" PRId64 "-%" PRId64, any ? "+" : "", ranges[i].low > 0 ? ranges[i].low : 0,
                       ranges[i].high);
            any = true;
        }
    if (!any)
        buf_addstr(out, "1-0");
}

void event_filter_add_options(const struct event_filter *f, struct buf *out)
{
    add_ranges(f, "size", ",sizes=", out);
    add_ranges(f, "thread", ",threads=", out);
}

void event_filter_free(struct event_filter *f)
{
    if (f)
        event_query_free(f->query);
    free(f);
}

struct event_blocks *event_blocks_new(void)
{
    struct event_blocks *b = mem_alloc(sizeof(*b));
    address_table_init(&b->live, BYTES);
    return b;
}

void event_blocks_free(struct event_blocks *b)
{
    if (!b)
        return;
    address_table_release(&b->live);
    map_release(&b->thread_numbers);
    vec_release(&b->threads);
    free(b);
}

static void add(struct event_blocks *b, uint64_t address)
{
    if (!*(uint64_t *)address_table_find(&b->live, BYTES, address))
        address_table_add(&b->live, BYTES, &address);
}

/* Returns whether the block was kept. */
static bool take(struct event_blocks *b, uint64_t address)
{
    uint64_t *block = address_table_find(&b->live, BYTES, address);
    if (!*block)
        return false;
    address_table_remove(&b->live, BYTES, block);
    return true;
}

/* Begins the life of a block; address 0: the request has failed. Returns whether an earlier event ended the life. */
static bool begin(struct event_blocks *b, const struct trace_event *e, uint64_t address, bool keep)
{
    if (!address)
        return false;
    if (keep && !early_frees_take_event(&b->early, e, address)) {
        add(b, address);
        return false;
    }
    take(b, address);
    return keep;
}

static struct thread *thread_of(struct event_blocks *b, uint32_t thread)
{
    bool added;
    const size_t number = map_put_u64(&b->thread_numbers, thread, b->threads.len, &added);
    if (added)
        vec_push(&b->threads);
    return &b->threads.at[number];
}

/* `early`: the life of the block begins with a later event, and the block is kept. */
static bool realloc_begins(struct event_blocks *b, const struct trace_event *e, uint64_t address, bool early)
{
    struct thread *t = thread_of(b, e->thread);
    if (t->moving) /* the end of the call before was lost */
        add(b, t->moving);
    t->moving = address && (take(b, address) || early) ? address : 0;
    return t->moving != 0;
}

/* Returns whether the thread's realloc() began with a kept block. *ended: whether the new block was freed earlier. */
static bool realloc_ends(struct event_blocks *b, const struct trace_event *e, uint64_t address,
                         uint64_t size_bytes, bool fits, bool *ended)
{
    struct thread *t = thread_of(b, e->thread);
    const uint64_t old = t->moving;
    const bool failed = !address && size_bytes;
    t->moving = 0;
    if (failed && old)
        add(b, old);
    if (failed)
        early_frees_take_back(&b->early, e->image_id, e->thread);
    *ended = begin(b, e, address, fits || old);
    return old != 0;
}

static uint64_t word(const struct trace_event *e, int n)
{
    uint64_t value;
    memcpy(&value, e->fields + 8 * n, sizeof(value));
    return value;
}

static struct event_place no_place(void *arg, const struct trace_event *e)
{
    (void)arg, (void)e;
    return (struct event_place){.function = NULL};
}

/* Returns whether the event of a birth will be kept. */
static bool will_keep(const struct event_filter *f, struct event_blocks *b, const struct trace_event *birth,
                      uint64_t began_ns)
{
    return event_query_fits(f->query, birth, began_ns, no_place, NULL) ||
           (event_id_plain(birth->class->id) == EVENT_realloc_end && thread_of(b, birth->thread)->moving);
}

uint64_t event_blocks_lacks(const struct event_blocks *b, const struct trace_event *e)
{
    const enum event_id id = event_id_plain(e->class->id);
    const uint64_t address = id == EVENT_free || id == EVENT_realloc_begin ? word(e, 0) : 0;
    return address && *(uint64_t *)address_table_find(&b->live, BYTES, address) ? 0 : address;
}

/* Returns whether the end of a life is kept. `early`: its beginning comes later, and will be kept. */
static bool keep_end(struct event_blocks *b, const struct trace_event *e, bool early)
{
    const enum event_id id = event_id_plain(e->class->id);
    if (early)
        early_frees_note_event(&b->early, e, word(e, 0), id == EVENT_realloc_begin);
    switch (id) {
    case EVENT_free:
        return thread_of(b, e->thread)->freed = take(b, word(e, 0)) || early;
    case EVENT_free_end:
        return thread_of(b, e->thread)->freed;
    default:
        return realloc_begins(b, e, word(e, 0), early);
    }
}

static bool is_end(const struct trace_event *e)
{
    const enum event_id id = event_id_plain(e->class->id);
    return id == EVENT_free || id == EVENT_free_end || id == EVENT_realloc_begin;
}

/* Returns whether another event is kept. */
static bool keep_other(struct event_blocks *b, const struct trace_event *e, bool fits)
{
    bool ended;
    switch (event_id_plain(e->class->id)) {
    case EVENT_malloc:
    case EVENT_calloc:
    case EVENT_memalign:
        begin(b, e, word(e, 0), fits);
        return fits;
    case EVENT_realloc_end:
        return realloc_ends(b, e, word(e, 0), word(e, 1), fits, &ended) || fits;
    default:
        return fits;
    }
}

bool event_filter_keeps(const struct event_filter *f, struct event_blocks *b, const struct trace_event *e,
                        const struct trace_event *birth, uint64_t began_ns)
{
    if (event_id_is_life(e->class->id))
        return true;
    if (is_end(e))
        return keep_end(b, e, birth && will_keep(f, b, birth, began_ns));
    return keep_other(b, e, event_query_fits(f->query, e, began_ns, no_place, NULL));
}

bool event_blocks_keep(struct event_blocks *b, const struct trace_event *e, bool fits, bool early)
{
    return is_end(e) ? keep_end(b, e, early) : keep_other(b, e, fits);
}

bool event_blocks_follow(struct event_blocks *b, const struct trace_event *e)
{
    const enum event_id id = event_id_plain(e->class->id);
    const uint64_t lacking = event_blocks_lacks(b, e);
    bool ended = false;
    early_frees_note_event(&b->early, e, lacking, id == EVENT_realloc_begin);
    switch (id) {
    case EVENT_free:
        if (!lacking)
            take(b, word(e, 0));
        return false;
    case EVENT_realloc_begin:
        realloc_begins(b, e, word(e, 0), lacking);
        return false;
    case EVENT_malloc:
    case EVENT_calloc:
    case EVENT_memalign:
        return begin(b, e, word(e, 0), true);
    case EVENT_realloc_end:
        realloc_ends(b, e, word(e, 0), word(e, 1), true, &ended);
        return ended;
    default:
        return false;
    }
}
