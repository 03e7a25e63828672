/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/kernel/frag_sites.h"

#include <stdio.h>

#include "base/hash_map.h"

/* Of a cache's slabs; 0: not known. */
struct geometry {
    uint64_t slab_bytes, stride, per_slab;
};

/* An object, live or freed. The objects of one slab stand together when they are sorted. */
struct place {
    uint64_t slab;
    uint32_t cache, site; /* NO_SITE: a freed object */
};
#define NO_SITE UINT32_MAX

struct places {
    struct VEC(struct place) all;
    const struct geometry *geometry; /* by cache */
    const uint32_t *site_of_row;
    const uint32_t *cache_of_row;
};

/* ---- the sizes of slabs ---- */

static struct geometry geometry_of(const struct memory_cache *c, uint64_t page_bytes)
{
    const uint32_t all = 1u << CACHE_ORDER | 1u << CACHE_STRIDE_BYTES | 1u << CACHE_PER_SLAB;
    if (!c || (c->known & all) != all)
        return (struct geometry){0};
    return (struct geometry){page_bytes << c->at[CACHE_ORDER], c->at[CACHE_STRIDE_BYTES],
                             c->at[CACHE_PER_SLAB]};
}

/* There are several caches for kmallocs of one size, kmalloc-64, kmalloc-cg-64 ...: alike, or nothing is known. */
static struct geometry kmalloc_geometry(const struct memory_state *s, uint64_t bytes)
{
    struct geometry found = {0};
    vec_each (const struct memory_cache, c, &s->caches) {
        if (!strstr(c->name, "kmalloc-") || !memory_cache_has(c, CACHE_OBJECT_BYTES) ||
            c->at[CACHE_OBJECT_BYTES] != bytes)
            continue;
        const struct geometry g = geometry_of(c, s->page_bytes);
        if (found.slab_bytes && memcmp(&g, &found, sizeof(g)) != 0)
            return (struct geometry){0};
        found = g;
    }
    return found;
}

static struct geometry find_geometry(const struct memory_state *s, const char *cache)
{
    unsigned bytes;
    struct geometry g = sscanf(cache, FRAG_KMALLOC_NAME, &bytes) == 1
                            ? kmalloc_geometry(s, bytes)
                            : geometry_of(memory_state_cache(s, cache), s->page_bytes);
    const bool valid = g.slab_bytes && !(g.slab_bytes & (g.slab_bytes - 1)) && g.stride && g.per_slab;
    return valid ? g : (struct geometry){0};
}

/*
 * ---- the caches of rows ----
 *
 * Before Linux 6.18, kmem_cache_alloc's event does not name the cache, but that of kmem_cache_free does. A row's cache
 * is the only one that frees named of objects of its call and its size, or else the only one that has objects of this
 * size. It must be one of that size in any case.
 */

static bool is_of_size(const struct kmem_account *r, const struct memory_cache *c)
{
    return c && memory_cache_has(c, CACHE_STRIDE_BYTES) && memory_cache_has(c, CACHE_OBJECT_BYTES) &&
           c->at[CACHE_STRIDE_BYTES] * r->allocations == r->allocated_bytes &&
           c->at[CACHE_OBJECT_BYTES] * r->allocations == r->requested_bytes;
}

static uint32_t merge_caches(uint32_t a, uint32_t b)
{
    return !a || a == b ? b : !b ? a : KMEM_CACHES;
}

/* What frees named of objects of the same call and size, as in kmem_account.freed_cache. */
static void learn(struct map *index, const struct kmem_account *rows, size_t n, uint32_t *learned,
                  size_t *group)
{
    size_t groups = 0;
    for (size_t i = 0; i < n; i++) {
        const uint64_t each = rows[i].allocations ? rows[i].allocated_bytes / rows[i].allocations : 0;
        const struct {
            uint64_t call_site, bytes;
        } key = {rows[i].call_site, each};
        bool added;
        group[i] = map_put(index, &key, sizeof(key), groups, &added);
        groups += added;
        learned[group[i]] = merge_caches(learned[group[i]], rows[i].freed_cache);
    }
}

static uint32_t only_of_size(const struct kmem_accounts *a, const struct memory_state *s,
                             const struct kmem_account *r)
{
    const struct memory_cache *only = NULL;
    vec_each (const struct memory_cache, c, &s->caches) {
        if (!is_of_size(r, c))
            continue;
        if (only)
            return r->cache;
        only = c;
    }
    for (size_t i = 0; only && i < kmem_accounts_texts(a); i++)
        if (!strcmp(kmem_accounts_text(a, (uint32_t)i), only->name))
            return (uint32_t)i;
    return r->cache;
}

static uint32_t cache_of(const struct kmem_accounts *a, const struct memory_state *s,
                         const struct kmem_account *r, uint32_t learned)
{
    if (*kmem_accounts_text(a, r->cache) || !r->allocations || learned == KMEM_CACHES)
        return r->cache;
    if (!learned)
        return only_of_size(a, s, r);
    const struct memory_cache *c = memory_state_cache(s, kmem_accounts_text(a, learned - 1));
    return is_of_size(r, c) ? learned - 1 : r->cache;
}

static void find_caches(const struct kmem_accounts *a, const struct memory_state *s, uint32_t *caches)
{
    size_t n;
    const struct kmem_account *rows = kmem_accounts_rows(a, &n);
    struct map index = {0};
    uint32_t *learned = mem_array(n + 1, sizeof(*learned));
    size_t *group = mem_array(n + 1, sizeof(*group));
    learn(&index, rows, n, learned, group);
    for (size_t i = 0; i < n; i++)
        caches[i] = cache_of(a, s, &rows[i], learned[group[i]]);
    free(learned);
    free(group);
    map_release(&index);
}

/* ---- sums ---- */

static uint32_t site_of(struct frag_sites *f, struct map *index, const struct kmem_account *r, uint32_t cache)
{
    const struct {
        uint64_t call_site, cache;
    } key = {r->call_site, cache};
    bool added;
    const size_t i = map_put(index, &key, sizeof(key), f->all.len, &added);
    if (added)
        *vec_push(&f->all) = (struct frag_site){.call_site = r->call_site, .cache = cache};
    struct frag_site *site = &f->all.at[i];
    site->allocated_bytes += r->allocated_bytes;
    site->slack_bytes += r->allocated_bytes - r->requested_bytes;
    site->live_objects += r->allocations - r->frees;
    const uint64_t live_bytes = r->allocated_bytes - r->freed_bytes;
    site->live_bytes += live_bytes;
    site->live_slack_bytes += live_bytes - (r->requested_bytes - r->freed_requested_bytes);
    return (uint32_t)i;
}

static void add_place(struct places *p, uint64_t address, uint32_t cache, uint32_t site)
{
    const struct geometry *g = &p->geometry[cache];
    if (g->slab_bytes)
        *vec_push(&p->all) = (struct place){address & ~(g->slab_bytes - 1), cache, site};
}

static void add_live(void *arg, const struct kmem_object *o)
{
    struct places *p = arg;
    add_place(p, o->address, p->cache_of_row[o->row], p->site_of_row[o->row]);
}

static void add_freed(void *arg, const struct kmem_object *o)
{
    add_place(arg, o->address, o->row, NO_SITE);
}

/* By slab, cache and site: freed objects come last. */
static int by_slab(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->slab != y->slab)
        return x->slab < y->slab ? -1 : 1;
    if (x->cache != y->cache)
        return x->cache < y->cache ? -1 : 1;
    return x->site < y->site ? -1 : x->site > y->site;
}

/* Charges what the slab's free places take to its live objects first[0..live). */
static void charge(struct frag_sites *f, const struct place *first, size_t live, uint64_t low, uint64_t high)
{
    uint64_t low_before = 0, high_before = 0;
    for (size_t i = 0, end; i < live; i = end) {
        for (end = i; end < live && first[end].site == first[i].site;)
            end++;
        struct frag_site *s = &f->all.at[first[i].site];
        /* so that the shares of all sites add up exactly */
        s->pinned_bytes.low += low * end / live - low_before;
        s->pinned_bytes.high += high * end / live - high_before;
        s->half_empty_slabs += high != 0;
        low_before = low * end / live;
        high_before = high * end / live;
    }
}

/* The objects first[0..n) of one slab, some of them freed. */
static void take_slab(struct frag_sites *f, const struct geometry *g, const struct place *first, size_t n)
{
    size_t live = 0;
    while (live < n && first[live].site != NO_SITE)
        live++;
    if (!live ||
        live > g->per_slab) /* more: the slab was freed and became one of other objects, without an event */
        return;
    const uint64_t most = g->per_slab - live, freed = n - live, least = freed < most ? freed : most;
    charge(f, first, live, 2 * least >= g->per_slab ? least * g->stride : 0,
           2 * most >= g->per_slab ? most * g->stride : 0);
}

static void take_slabs(struct frag_sites *f, const struct places *p)
{
    if (p->all.len)
        qsort(p->all.at, p->all.len, sizeof(*p->all.at), by_slab);
    for (size_t i = 0, end; i < p->all.len; i = end) {
        const struct place *first = &p->all.at[i];
        for (end = i;
             end < p->all.len && p->all.at[end].slab == first->slab && p->all.at[end].cache == first->cache;)
            end++;
        take_slab(f, &p->geometry[first->cache], first, end - i);
    }
}

void frag_sites_compute(struct frag_sites *f, const struct kmem_accounts *a, const struct memory_state *s,
                        bool follows_freed)
{
    size_t n;
    const struct kmem_account *rows = kmem_accounts_rows(a, &n);
    const size_t texts = kmem_accounts_texts(a);
    struct map index = {0};
    struct geometry *geometry = mem_array(texts + 1, sizeof(*geometry));
    uint32_t *sites = mem_array(n + 1, sizeof(*sites)), *caches = mem_array(n + 1, sizeof(*caches));
    struct places p = {.geometry = geometry, .site_of_row = sites, .cache_of_row = caches};
    *f = (struct frag_sites){.follows_freed = follows_freed};
    for (size_t i = 0; i < texts; i++)
        geometry[i] = find_geometry(s, kmem_accounts_text(a, (uint32_t)i));
    find_caches(a, s, caches);
    for (size_t i = 0; i < n; i++)
        sites[i] = site_of(f, &index, &rows[i], caches[i]);
    vec_each (struct frag_site, site, &f->all)
        site->pinned_bytes.known = geometry[site->cache].slab_bytes != 0;
    kmem_accounts_each_live(a, add_live, &p);
    kmem_accounts_each_freed(a, add_freed, &p);
    take_slabs(f, &p);
    vec_release(&p.all);
    map_release(&index);
    free(geometry);
    free(sites);
    free(caches);
}

void frag_sites_release(struct frag_sites *f)
{
    vec_release(&f->all);
}
