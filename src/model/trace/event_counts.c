/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/trace/event_counts.h"

#include <stdlib.h>

#include "base/hash_map.h"
#include "base/mem.h"

enum { EVENT, PROCESS, THREAD, CPU, EVENTS, BYTES, RATE, LOST, COLUMNS };

static const struct table_column columns[COLUMNS] = {
    [EVENT] = {.name = "event", .type = TABLE_TEXT},
    [PROCESS] = {.name = "process", .type = TABLE_WHOLE},
    [THREAD] = {.name = "thread", .type = TABLE_WHOLE},
    [CPU] = {.name = "cpu", .type = TABLE_WHOLE},
    [EVENTS] = {.name = "events", .type = TABLE_WHOLE, .unit = TABLE_COUNT},
    [BYTES] = {.name = "field", .type = TABLE_WHOLE, .unit = TABLE_BYTES, .header = "bytes"},
    [RATE] = {.name = "events_per_s", .type = TABLE_REAL, .unit = TABLE_COUNT, .header = "per s"},
    [LOST] = {.name = "lost_events", .type = TABLE_WHOLE, .unit = TABLE_COUNT, .header = "lost"},
};

struct row {
    const struct event_class *class;
    uint32_t process, thread, cpu;
    uint64_t events, bytes, lost;
    bool has_bytes;
};

struct event_counts {
    enum event_counts_group group;
    struct map numbers;
    struct VEC(struct row) rows;
    uint64_t first_ns, last_ns;
};

struct event_counts *event_counts_new(enum event_counts_group group)
{
    struct event_counts *c = mem_alloc(sizeof(*c));
    c->group = group;
    return c;
}

void event_counts_free(struct event_counts *c)
{
    if (!c)
        return;
    map_release(&c->numbers);
    vec_release(&c->rows);
    free(c);
}

static uint64_t key_of(const struct event_counts *c, const struct trace_event *e)
{
    switch (c->group) {
    case EVENT_COUNTS_BY_EVENT:
        return (uintptr_t)e->class;
    case EVENT_COUNTS_BY_THREAD:
        return (uint64_t)(uint32_t)e->pid << 32 | e->thread;
    case EVENT_COUNTS_BY_CPU:
        return e->cpu;
    }
    return 0;
}

/* Adds the bytes of a field that counts some. */
static void add_bytes(struct row *r, const struct trace_event *e)
{
    uint32_t end = 0;
    for (uint32_t i = 0; i < e->class->n_fields; i++) {
        const struct event_field *f = &e->class->fields[i];
        const uint32_t at = event_field_at(f, end);
        if (f->type == EVENT_BYTES) {
            r->bytes += trace_event_number(f, e->fields + at);
            r->has_bytes = true;
        }
        end = at + f->bytes;
    }
}

void event_counts_add(struct event_counts *c, const struct trace_event *e)
{
    bool added;
    const size_t number = map_put_u64(&c->numbers, key_of(c, e), c->rows.len, &added);
    if (added)
        *vec_push(&c->rows) =
            (struct row){.class = e->class, .process = (uint32_t)e->pid, .thread = e->thread, .cpu = e->cpu};
    c->rows.at[number].events++;
    add_bytes(&c->rows.at[number], e);
    c->first_ns = c->first_ns ? c->first_ns : e->time_ns;
    c->last_ns = e->time_ns;
}

void event_counts_add_lost(struct event_counts *c, uint32_t cpu, uint64_t events)
{
    bool added;
    if (c->group != EVENT_COUNTS_BY_CPU || !events)
        return;
    const size_t number = map_put_u64(&c->numbers, cpu, c->rows.len, &added);
    if (added)
        *vec_push(&c->rows) = (struct row){.cpu = cpu};
    c->rows.at[number].lost += events;
}

struct table *event_counts_table(const struct event_counts *c, uint32_t top)
{
    struct table *t = table_new("events", 1, columns, COLUMNS);
    const double seconds = (double)(c->last_ns - c->first_ns) / 1e9;
    vec_each (const struct row, r, &c->rows) {
        table_row(t);
        if (c->group == EVENT_COUNTS_BY_EVENT)
            table_text(t, EVENT, trace_event_name(r->class));
        if (c->group == EVENT_COUNTS_BY_THREAD) {
            table_whole(t, PROCESS, r->process);
            table_whole(t, THREAD, r->thread);
        }
        if (c->group == EVENT_COUNTS_BY_CPU) {
            table_whole(t, CPU, r->cpu);
            table_whole(t, LOST, r->lost);
        }
        table_whole(t, EVENTS, r->events);
        if (r->has_bytes)
            table_whole(t, BYTES, r->bytes);
        if (seconds > 0)
            table_real(t, RATE, (double)r->events / seconds);
    }
    t->hidden = c->group == EVENT_COUNTS_BY_EVENT    ? 1u << PROCESS | 1u << THREAD | 1u << CPU | 1u << LOST
                : c->group == EVENT_COUNTS_BY_THREAD ? 1u << EVENT | 1u << CPU | 1u << LOST
                                                     : 1u << EVENT | 1u << PROCESS | 1u << THREAD;
    table_sort(t, EVENTS, TABLE_MOST_FIRST);
    if (top)
        table_cut(t, top);
    return t;
}
