/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/kernel/early_objects.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/hash_map.h"
#include "base/mem.h"
#include "base/vec.h"

#define NAMES_SHOWN 3u
#define KIB         UINT64_C(1024)

/* Caches of the tracing itself. */
static const char *const tracing_caches[] = {"ftrace_event_field", "trace_event_file", "tracefs_inode_cache",
                                             NULL};

struct live {
    size_t cache; /* MAP_NONE: not known */
    bool is_kmalloc;
    uint64_t stride_bytes, objects;
};

struct frees {
    size_t cache;
    uint64_t n;
};

struct early_objects {
    struct VEC(struct early_cache) caches;
    struct map cache_index;
    struct VEC(struct live) live;
    struct VEC(struct frees) frees;
    struct map unnamed; /* strides of objects of which the trace does not know the cache */
    struct map shared;  /* strides of caches of kmalloc() with other objects */
    struct VEC(struct early_row) rows;
    struct VEC(struct early_cache) tracing; /* of each row: the sums of its caches that are the tracing's */
    struct map row_index;
    uint64_t unplaced_objects;
    uint64_t own_stride_bytes, own; /* see early_objects_set_own() */
};

struct early_objects *early_objects_new(void)
{
    return mem_alloc(sizeof(struct early_objects));
}

void early_objects_free(struct early_objects *o)
{
    if (!o)
        return;
    vec_each (struct early_cache, c, &o->caches)
        free((char *)c->name);
    vec_each (struct early_row, r, &o->rows)
        free(r->caches);
    vec_release(&o->caches);
    vec_release(&o->live);
    vec_release(&o->frees);
    vec_release(&o->rows);
    vec_release(&o->tracing);
    map_release(&o->cache_index);
    map_release(&o->unnamed);
    map_release(&o->shared);
    map_release(&o->row_index);
    free(o);
}

static size_t find_cache(const struct early_objects *o, const char *name)
{
    return *name ? map_get(&o->cache_index, name, strlen(name)) : MAP_NONE;
}

void early_objects_add_cache(struct early_objects *o, const struct early_cache *c)
{
    bool added;
    map_put(&o->cache_index, c->name, strlen(c->name), o->caches.len, &added);
    if (!added) /* of two caches of one name, events tell only one */
        map_put_u64(&o->unnamed, c->stride_bytes, 0, NULL);
    struct early_cache *own = vec_push(&o->caches);
    *own = *c;
    own->name = mem_strdup(c->name);
    if (c->is_kmalloc && c->has_others)
        map_put_u64(&o->shared, c->stride_bytes, 0, NULL);
}

void early_objects_add_live(struct early_objects *o, const struct early_live *l)
{
    const size_t cache = l->is_kmalloc ? MAP_NONE : find_cache(o, l->cache);
    if (!l->is_kmalloc && cache == MAP_NONE)
        map_put_u64(&o->unnamed, l->stride_bytes, 0, NULL);
    *vec_push(&o->live) = (struct live){cache, l->is_kmalloc, l->stride_bytes, l->objects};
}

void early_objects_add_frees(struct early_objects *o, const char *cache, uint64_t n)
{
    *vec_push(&o->frees) = (struct frees){find_cache(o, cache), n};
}

/* ---- rows ---- */

/* What tells rows apart: a cache, or several whose objects the trace cannot tell apart. */
struct row_key {
    uint64_t stride_bytes;
    size_t cache; /* MAP_NONE: several */
    uint64_t is_kmalloc;
};

static struct row_key key_of(const struct early_objects *o, uint64_t stride_bytes, bool is_kmalloc,
                             size_t cache)
{
    const bool unnamed = map_get_u64(&o->unnamed, stride_bytes) != MAP_NONE;
    const bool shared = map_get_u64(&o->shared, stride_bytes) != MAP_NONE;
    if (is_kmalloc || (unnamed && shared))
        return (struct row_key){stride_bytes, MAP_NONE, !(unnamed && shared)};
    return (struct row_key){stride_bytes, unnamed ? MAP_NONE : cache, 0};
}

static struct early_row *find_row(const struct early_objects *o, uint64_t stride_bytes, bool is_kmalloc,
                                  size_t cache)
{
    const struct row_key key = key_of(o, stride_bytes, is_kmalloc, cache);
    size_t row = map_get(&o->row_index, &key, sizeof(key));
    return row == MAP_NONE ? NULL : &o->rows.at[row];
}

static struct early_row *row_of(const struct early_objects *o, size_t cache)
{
    const struct early_cache *c = &o->caches.at[cache];
    return find_row(o, c->stride_bytes, c->is_kmalloc, cache);
}

static bool is_of_tracing(const char *name)
{
    for (size_t i = 0; tracing_caches[i]; i++)
        if (!strcmp(name, tracing_caches[i]))
            return true;
    return false;
}

static uint64_t add_known(uint64_t a, uint64_t b)
{
    return a == EARLY_UNKNOWN || b == EARLY_UNKNOWN ? EARLY_UNKNOWN : a + b;
}

static void add_to_row(struct early_objects *o, size_t cache)
{
    const struct early_cache *c = &o->caches.at[cache];
    const struct row_key key = key_of(o, c->stride_bytes, c->is_kmalloc, cache);
    bool added;
    size_t at = map_put(&o->row_index, &key, sizeof(key), o->rows.len, &added);
    if (added) {
        *vec_push(&o->rows) = (struct early_row){.stride_bytes = c->stride_bytes};
        vec_push(&o->tracing);
    }
    struct early_row *r = &o->rows.at[at];
    r->active += c->active;
    r->slots += c->slots;
    r->cpu_slots = add_known(r->cpu_slots, c->cpu_slots);
    if (!is_of_tracing(c->name))
        return;
    struct early_cache *t = &o->tracing.at[at];
    t->active += c->active;
    t->slots += c->slots;
    t->cpu_slots = add_known(t->cpu_slots, c->cpu_slots);
}

/* The names of a row's caches, in the order of slabinfo. */
static void name_row(const struct early_objects *o, struct early_row *r)
{
    struct buf b = BUF_INIT;
    size_t n = 0;
    for (size_t i = 0; i < o->caches.len; i++) {
        const struct early_cache *c = &o->caches.at[i];
        if (row_of(o, i) != r || !c->active)
            continue;
        if (n++ < NAMES_SHOWN)
            buf_printf(&b, "%s%s", n > 1 ? ", " : "", c->name);
    }
    if (n > NAMES_SHOWN)
        buf_printf(&b, " and %zu other%s", n - NAMES_SHOWN, n - NAMES_SHOWN > 1 ? "s" : "");
    r->caches = buf_detach(&b);
}

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static void bound(uint64_t active, uint64_t slots, uint64_t cpu_slots, uint64_t traced, uint64_t *low,
                  uint64_t *high)
{
    *low = cpu_slots == EARLY_UNKNOWN ? 0 : less(less(active, cpu_slots), traced);
    *high = active;
    if (traced <= slots && slots - traced < *high)
        *high = slots - traced;
}

/*
 * The tracing's caches may share their row with others; the traced objects of the row may be theirs, or not. With both
 * bounds of a part, those of the rest follow from those of the whole.
 */
static void bound_row(struct early_row *r, const struct early_cache *tracing, uint64_t own, bool lost)
{
    uint64_t low, high, ignored;
    bound(r->active, r->slots, lost ? EARLY_UNKNOWN : r->cpu_slots, r->traced, &low, &high);
    high = lost ? r->active : high;
    if (tracing->active == r->active) {
        r->own_low = low;
        r->own_high = high;
        return;
    }
    bound(tracing->active, tracing->slots, lost ? EARLY_UNKNOWN : tracing->cpu_slots, r->traced, &r->own_low,
          &ignored);
    r->own_high = tracing->active;
    r->own_low += own;
    r->own_high = r->own_high + own < high ? r->own_high + own : high;
    r->own_low = r->own_low < r->own_high ? r->own_low : r->own_high;
    r->low = less(low, r->own_high);
    r->high = less(high, r->own_low);
}

static int by_bytes(const void *a, const void *b)
{
    const struct early_row *x = a, *y = b;
    const uint64_t m = x->high * x->stride_bytes, n = y->high * y->stride_bytes;
    return m != n ? (m < n ? 1 : -1) : strcmp(x->caches, y->caches);
}

void early_objects_set_own(struct early_objects *o, uint64_t stride_bytes, uint64_t n)
{
    o->own_stride_bytes = stride_bytes;
    o->own = n;
}

void early_objects_compute(struct early_objects *o, bool lost)
{
    for (size_t i = 0; i < o->caches.len; i++)
        add_to_row(o, i);
    vec_each (const struct live, l, &o->live) {
        const bool is_kmalloc = l->is_kmalloc || (l->cache != MAP_NONE && o->caches.at[l->cache].is_kmalloc);
        struct early_row *r = find_row(o, l->stride_bytes, is_kmalloc, l->cache);
        if (r)
            r->traced += l->objects;
        else
            o->unplaced_objects += l->objects;
    }
    vec_each (const struct frees, f, &o->frees)
        if (f->cache != MAP_NONE)
            row_of(o, f->cache)->frees += f->n;
    const struct early_row *own = find_row(o, o->own_stride_bytes, true, MAP_NONE);
    for (size_t i = 0; i < o->rows.len; i++) {
        struct early_row *r = &o->rows.at[i];
        name_row(o, r);
        bound_row(r, &o->tracing.at[i], r == own ? o->own : 0, lost);
    }
    if (o->rows.len)
        qsort(o->rows.at, o->rows.len, sizeof(*o->rows.at), by_bytes);
    map_release(&o->row_index); /* it has the numbers of before */
}

const struct early_row *early_objects_rows(const struct early_objects *o, size_t *n)
{
    *n = o->rows.len;
    return o->rows.at;
}

struct early_sums early_objects_sums(const struct early_objects *o)
{
    struct early_sums s = {.unplaced_objects = o->unplaced_objects};
    vec_each (const struct early_row, r, &o->rows) {
        s.active_bytes += r->active * r->stride_bytes;
        s.low_bytes += r->low * r->stride_bytes;
        s.high_bytes += r->high * r->stride_bytes;
        s.own_low_bytes += r->own_low * r->stride_bytes;
        s.own_high_bytes += r->own_high * r->stride_bytes;
    }
    s.active_bytes = less(s.active_bytes, s.own_low_bytes);
    return s;
}

/* ---- the kernel's log ---- */

/* "16384K kernel code" */
static uint64_t figure(const char *line, const char *what)
{
    const char *end = strstr(line, what), *at = end;
    while (at && at > line && at[-1] >= '0' && at[-1] <= '9')
        at--;
    return at && at < end ? strtoull(at, NULL, 10) * KIB : 0;
}

bool early_reserved_parse(struct early_reserved *r, const char *line)
{
    uint64_t available, total;
    *r = (struct early_reserved){0};
    if (sscanf(line, "Memory: %" SCNu64 "K/%" SCNu64 "K available", &available, &total) != 2)
        return false;
    *r = (struct early_reserved){.total = total * KIB,
                                 .available = available * KIB,
                                 .code = figure(line, "K kernel code"),
                                 .rwdata = figure(line, "K rwdata"),
                                 .rodata = figure(line, "K rodata"),
                                 .init = figure(line, "K init"),
                                 .bss = figure(line, "K bss"),
                                 .reserved = figure(line, "K reserved")};
    return true;
}
