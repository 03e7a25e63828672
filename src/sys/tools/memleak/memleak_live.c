/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/tools/memleak/memleak_live.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/hash_map.h"
#include "base/sigsafe/clock_ns.h"
#include "bpf/memleak.h"
#include "sys/resolver.h"
#include "sys/stack_samples.h"
#include "sys/tools/memleak/memleak_processes.h"

#define SIZE_CLASSES 64u

/* Objects of about one size, of which the estimate is made. */
struct size_class {
    uint64_t samples;
    double seen, bytes, count;
};

struct key {
    uint64_t site;
    int32_t stack;
    uint32_t pid;
    char comm[SYS_COMM_BYTES];
};

struct row {
    struct key key;
    uint64_t oldest_ns; /* when it was allocated */
    uint64_t latest_ns;
    uint64_t classes_used; /* bits */
    struct size_class classes[SIZE_CLASSES];
};

struct memleak_live {
    struct map index; /* by key */
    struct VEC(struct row *) rows;
    struct map before; /* bytes by key, at the last report */
    bool has_before;
    struct VEC(struct memleak_address) gone;
};

static void forget(struct memleak_live *l)
{
    vec_each (struct row *, row, &l->rows)
        free(*row);
    vec_release(&l->rows);
    map_release(&l->index);
    vec_release(&l->gone);
}

void memleak_live_free(struct memleak_live *l)
{
    if (!l)
        return;
    forget(l);
    map_release(&l->before);
    free(l);
}

/* ---- objects ---- */

static const char *comm_of(const struct memleak_own *o, uint32_t pid)
{
    const struct alloc_process *p = alloc_processes_find(o->processes, (pid_t)pid);
    return p ? p->comm : "";
}

static void fill_key(struct sys_session *s, struct key *key, const struct memleak_object *object)
{
    const uint32_t parts = s->settings.config.parts;
    memset(key, 0, sizeof(*key));
    key->stack = SYS_NO_STACK;
    if (parts & MEMLEAK_BY_COMM)
        snprintf(key->comm, sizeof(key->comm), "%s", comm_of(s->own, object->pid));
    else
        key->pid = object->pid;
    if (parts & MEMLEAK_BY_STACK)
        key->stack = s->samples ? stack_samples_unify(s, object->stack) : object->stack;
    if (parts & MEMLEAK_BY_SITE)
        key->site = object->site;
}

static struct row *row_of(struct memleak_live *l, const struct key *key)
{
    bool added;
    const size_t at = map_put(&l->index, key, sizeof(*key), l->rows.len, &added);
    if (added) {
        struct row *row = mem_alloc(sizeof(*row));
        *row = (struct row){.key = *key, .oldest_ns = UINT64_MAX};
        *vec_push(&l->rows) = row;
    }
    return l->rows.at[at];
}

static void add_object(struct row *row, const struct memleak_object *object, double period)
{
    const double bytes = (double)object->bytes;
    const double weight = period > 1 ? -1 / expm1(-bytes / period) : 1;
    const unsigned class = table_slot(object->bytes);
    struct size_class *c = &row->classes[class];
    row->classes_used |= 1ull << class;
    c->samples++;
    c->seen += bytes;
    c->bytes += bytes * weight;
    c->count += weight;
    if (object->time_ns < row->oldest_ns)
        row->oldest_ns = object->time_ns;
    if (object->time_ns > row->latest_ns)
        row->latest_ns = object->time_ns;
}

static bool is_gone(const struct memleak_own *o, uint32_t image)
{
    vec_each (const uint32_t, gone, &o->gone_images)
        if (*gone == image)
            return true;
    return false;
}

static void add(void *arg, const void *address, const void *value)
{
    struct sys_session *s = arg;
    struct memleak_own *o = s->own;
    struct memleak_live *l = o->live;
    const struct memleak_address *at = address;
    const struct memleak_object *object = value;
    const uint64_t now = s->until_ns ? s->until_ns : clock_ns(CLOCK_MONOTONIC);
    struct key key;
    if (is_gone(o, at->image)) {
        *vec_push(&l->gone) = *at;
        return;
    }
    if (o->settings.older_ns && object->time_ns + o->settings.older_ns > now)
        return;
    fill_key(s, &key, object);
    add_object(row_of(l, &key), object, (double)o->settings.period);
}

void memleak_gather(struct sys_session *s)
{
    struct memleak_own *o = s->own;
    if (!o->live)
        o->live = mem_alloc(sizeof(*o->live));
    forget(o->live);
    if (!o->removed)
        ring_buffer__consume(o->notices); /* a program that was replaced just now has no objects any more */
    if (s->until_ns)                      /* the end */
        alloc_processes_detach(o->processes);
    memleak_cost_say(&o->cost, s, &s->says);
    stack_samples_read(s);
    sys_each(s, "live", add, s);
    vec_each (const struct memleak_address, gone, &o->live->gone)
        o->of_exec += !bpf_map_delete_elem(sys_map(s, "live"), gone);
}

/* ---- rows ---- */

static void name_row(struct sys_session *s, struct table *t, const struct row *row)
{
    const uint32_t parts = s->settings.config.parts;
    if (parts & MEMLEAK_BY_COMM) {
        table_text(t, MEMLEAK_COMM, row->key.comm);
        return;
    }
    table_whole(t, MEMLEAK_PID, row->key.pid);
    if (parts & MEMLEAK_BY_PROCESS)
        table_text(t, MEMLEAK_COMM, comm_of(s->own, row->key.pid));
    if (parts & MEMLEAK_BY_SITE)
        resolver_user(s, t, MEMLEAK_SITE, row->key.site, row->key.pid, row->latest_ns);
    if (parts & MEMLEAK_BY_STACK)
        resolver_user_stack(s, t, MEMLEAK_STACK, row->key.stack, row->key.pid, row->latest_ns);
}

static void add_sizes(struct table *t, const struct row *row)
{
    uint64_t slots[SIZE_CLASSES];
    for (unsigned i = 0; i < SIZE_CLASSES; i++)
        slots[i] = (uint64_t)llround(row->classes[i].count);
    table_histogram(t, MEMLEAK_SIZES, slots, SIZE_CLASSES);
}

static void show(struct sys_session *s, struct table *t, const struct row *row)
{
    const struct memleak_own *o = s->own;
    struct memleak_live *l = o->live;
    const uint64_t now = s->until_ns ? s->until_ns : clock_ns(CLOCK_MONOTONIC);
    struct estimate bytes = {0}, count = {0};
    for (unsigned i = 0; i < SIZE_CLASSES; i++) {
        const struct size_class *c = &row->classes[i];
        if (row->classes_used >> i & 1)
            estimate_add_cell(
                &bytes, &count,
                &(struct estimate_cell){c->samples, c->seen, c->bytes, c->count, (double)o->settings.period});
    }
    table_row(t);
    name_row(s, t, row);
    table_estimate(t, MEMLEAK_LIVE, &bytes);
    table_estimate(t, MEMLEAK_OBJECTS, &count);
    table_whole(t, MEMLEAK_OLDEST, now - row->oldest_ns);
    if (s->settings.config.histograms)
        add_sizes(t, row);
    if (l->has_before) {
        const size_t was = map_get(&l->before, &row->key, sizeof(row->key));
        table_signed(t, MEMLEAK_GROWTH, (int64_t)llround(bytes.value) - (was == MAP_NONE ? 0 : (int64_t)was));
    }
}

/* For the growth that the next report shows. */
static void remember(struct memleak_live *l)
{
    map_release(&l->before);
    l->has_before = true;
    vec_each (struct row *, row, &l->rows) {
        double bytes = 0;
        for (unsigned i = 0; i < SIZE_CLASSES; i++)
            bytes += (*row)->classes[i].bytes;
        map_put(&l->before, &(*row)->key, sizeof((*row)->key), (size_t)llround(bytes), NULL);
    }
}

void memleak_rest(struct sys_session *s, struct table *t)
{
    struct memleak_own *o = s->own;
    vec_each (struct row *, row, &o->live->rows)
        if (!sys_loses(s))
            show(s, t, *row);
    remember(o->live);
}
