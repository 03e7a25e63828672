/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Objects that are a little too large for a bucket of kmalloc(): fewer bytes would take the next smaller bucket; a
 * cache of their own would have no unused bytes behind each; large ones, which are made of a power of two of pages,
 * could be made of as many pages as they need.
 */
#include "model/kernel/advice/advice_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An object that should be made smaller by more than this share of it is another object. */
#define LESS_SHARE 8
/* Unused bytes behind each object, as a share of it, from which a cache of its own is worth while. */
#define WASTE_SHARE 8
#define CACHE_ALIGN UINT64_C(8)
#define ORDER_MOST  3u

static const uint64_t buckets[] = {8, 16, 32, 64, 96, 128, 192, 256, 512, 1024, 2048, 4096, 8192};
#define BUCKETS (sizeof(buckets) / sizeof(*buckets))

/* All live objects of one call in one bucket. */
struct group {
    size_t call;
    uint64_t object_bytes, objects;
    uint64_t least_bytes, most_bytes; /* requested */
    uint64_t exact_bytes;             /* if each were made of as many pages as it needs */
    size_t sizes;                     /* different ones */
    bool pages;
};

/* How many objects a slab has. */
struct layout {
    uint64_t slab_bytes, objects;
};

/* As the kernel's calculate_order(): the first order at which at most a 16th of the slab is left over, or an 8th ... */
static struct layout layout_of(const struct advice_input *in, uint64_t object_bytes)
{
    for (uint64_t share = 16; share > 1; share /= 2)
        for (unsigned order = advice_order_of(in->page_bytes, object_bytes); order <= ORDER_MOST; order++) {
            const uint64_t slab = in->page_bytes << order;
            if (slab % object_bytes <= slab / share)
                return (struct layout){slab, slab / object_bytes};
        }
    return (struct layout){in->page_bytes << advice_order_of(in->page_bytes, object_bytes), 1};
}

/* The cache "kmalloc-64" or "kmalloc-1k" of that size, if there is one. */
static const struct advice_cache *find_bucket(const struct advice_input *in, uint64_t bytes)
{
    char name[32];
    if (bytes >= 1024)
        snprintf(name, sizeof(name), "kmalloc-%" PRIu64 "k", bytes / 1024);
    else
        snprintf(name, sizeof(name), "kmalloc-%" PRIu64, bytes);
    vec_each (const struct advice_cache, c, &in->caches)
        if (!strcmp(c->name, name))
            return c;
    return NULL;
}

static struct layout bucket_layout(const struct advice_input *in, uint64_t bytes)
{
    const struct advice_cache *c = find_bucket(in, bytes);
    return c && c->slab_bytes ? (struct layout){c->slab_bytes, c->per_slab} : layout_of(in, bytes);
}

/* Returns the next smaller bucket of this kernel; 0: there is none. Some kernels have none of 96 and 192 bytes. */
static uint64_t smaller_bucket(const struct advice_input *in, uint64_t bytes)
{
    for (size_t i = BUCKETS; i-- > 0;)
        if (buckets[i] < bytes && (!in->caches.len || find_bucket(in, buckets[i])))
            return buckets[i];
    return 0;
}

/* ---- measures ---- */

/* The whole slabs that are surely saved when `objects` move from one layout into another, of which `busy` slabs more
 * are in use by CPUs. */
static uint64_t saved_at_least(uint64_t objects, struct layout from, struct layout to, uint64_t busy)
{
    const uint64_t before = advice_times(objects / from.objects, from.slab_bytes);
    return advice_less(before, advice_times(advice_slabs_for(objects, to.objects) + busy, to.slab_bytes));
}

static void tell_source(struct advice_measure *m, const struct advice_input *in, const struct group *g)
{
    const struct advice_call *c = &in->calls.at[g->call];
    char requested[64];
    if (g->sizes == 1)
        snprintf(requested, sizeof(requested), "%" PRIu64, g->most_bytes);
    else
        snprintf(requested, sizeof(requested), "%" PRIu64 " to %" PRIu64, g->least_bytes, g->most_bytes);
    advice_row(m, "%s%s%s%s: %" PRIu64 " live objects, of each %s B requested, %" PRIu64 " B allocated",
               c->name, c->file ? " (" : "", c->file ? c->file : "", c->file ? ")" : "", g->objects,
               requested, g->object_bytes);
    advice_claim_call(m, g->call);
}

/* Objects that count as live may have been freed, if events were lost. */
static uint64_t low_of(const struct advice_input *in, uint64_t low)
{
    return in->lossy ? 0 : low;
}

static void less_bytes(struct advice *a, const struct advice_input *in, const struct group *g)
{
    const uint64_t next = g->pages ? g->object_bytes / 2 : smaller_bucket(in, g->object_bytes);
    if (!next || g->most_bytes <= next || g->most_bytes - next > g->most_bytes / LESS_SHARE)
        return;
    const uint64_t less = g->most_bytes - next, high = advice_times(g->objects, g->object_bytes - next);
    const uint64_t low =
        g->pages ? high
                 : saved_at_least(g->objects, bucket_layout(in, g->object_bytes), bucket_layout(in, next), 0);
    struct advice_measure *m = advice_add(a, ADVICE_BUCKET, low_of(in, low), high);
    if (!m)
        return;
    advice_change(m, "request %" PRIu64 " bytes less in %s: %s", less, in->calls.at[g->call].name,
                  2 * next == g->object_bytes ? "that halves each object"
                                              : "each object fits the next smaller bucket");
    advice_formula(m, "%" PRIu64 " live objects x (%" PRIu64 " - %" PRIu64 ") B; low: whole slabs only%s",
                   g->objects, g->object_bytes, next, in->lossy ? ", and none, since events were lost" : "");
    advice_cost(
        m,
        "a change of the structure: a smaller field, another order of its fields, or a part of it elsewhere");
    tell_source(m, in, g);
}

static void own_cache(struct advice *a, const struct advice_input *in, const struct group *g)
{
    const uint64_t bytes = (g->most_bytes + CACHE_ALIGN - 1) / CACHE_ALIGN * CACHE_ALIGN;
    if (g->pages || bytes >= g->object_bytes || g->object_bytes - bytes < g->object_bytes / WASTE_SHARE)
        return;
    const struct layout from = bucket_layout(in, g->object_bytes), to = layout_of(in, bytes);
    const uint64_t before = advice_times(g->objects, from.slab_bytes) / from.objects;
    const uint64_t high = advice_less(before, advice_times(g->objects, to.slab_bytes) / to.objects);
    const uint64_t busy = in->cpus ? in->cpus : 1;
    struct advice_measure *m =
        advice_add(a, ADVICE_BUCKET, low_of(in, saved_at_least(g->objects, from, to, busy)), high);
    if (!m)
        return;
    advice_change(m, "give the objects of %s a cache of their own: kmem_cache_create() of %" PRIu64 " bytes",
                  in->calls.at[g->call].name, bytes);
    advice_formula(m,
                   "%" PRIu64 " live objects x (%" PRIu64 " / %" PRIu64 " - %" PRIu64 " / %" PRIu64
                   ") B of a slab; low: whole slabs only, and one more for each CPU%s",
                   g->objects, from.slab_bytes, from.objects, to.slab_bytes, to.objects,
                   in->lossy ? "; none, since events were lost" : "");
    advice_cost(m, "a change of the source; free objects of the new cache serve no other user");
    tell_source(m, in, g);
}

static void exact_pages(struct advice *a, const struct advice_input *in, const struct group *g)
{
    if (!g->pages)
        return;
    const uint64_t saved = advice_less(advice_times(g->objects, g->object_bytes), g->exact_bytes);
    struct advice_measure *m = advice_add(a, ADVICE_BUCKET, low_of(in, saved), saved);
    if (!m)
        return;
    advice_change(m, "allocate with kvmalloc() or alloc_pages_exact() in %s", in->calls.at[g->call].name);
    advice_formula(m, "%" PRIu64 " live objects x %" PRIu64 " B - %" PRIu64 " B in pages that they need%s",
                   g->objects, g->object_bytes, g->exact_bytes,
                   in->lossy ? "; low: none, since events were lost" : "");
    advice_cost(m, "kvmalloc() may return memory that is not contiguous: not for DMA");
    tell_source(m, in, g);
}

/* ---- groups ---- */

static int by_call(const void *one, const void *other)
{
    const struct advice_size *a = one, *b = other;
    if (a->call != b->call)
        return a->call < b->call ? -1 : 1;
    if (a->object_bytes != b->object_bytes)
        return a->object_bytes < b->object_bytes ? -1 : 1;
    return (a->requested_bytes > b->requested_bytes) - (a->requested_bytes < b->requested_bytes);
}

static void add_size(struct group *g, const struct advice_size *s, uint64_t page_bytes)
{
    const uint64_t pages = advice_slabs_for(s->requested_bytes, page_bytes);
    if (!g->sizes || s->requested_bytes < g->least_bytes)
        g->least_bytes = s->requested_bytes;
    if (s->requested_bytes > g->most_bytes)
        g->most_bytes = s->requested_bytes;
    g->objects += s->live_objects;
    g->exact_bytes += advice_times(s->live_objects, advice_times(pages, page_bytes));
    g->sizes++;
}

void advice_find_objects(struct advice *a, const struct advice_input *in)
{
    if (!in->has_sizes) {
        advice_unknown(
            a, in->has_calls
                   ? "Objects that are a little too large: this recording does not tell the sizes of "
                     "live objects; record anew: allium sys record"
                   : "Objects that are a little too large, and the memory of each option: they need a "
                     "recording, sudo allium sys record -o FILE, and --from FILE");
        return;
    }
    struct advice_size *sizes = mem_array(in->sizes.len + 1, sizeof(*sizes));
    if (in->sizes.len) {
        memcpy(sizes, in->sizes.at, in->sizes.len * sizeof(*sizes));
        qsort(sizes, in->sizes.len, sizeof(*sizes), by_call);
    }
    for (size_t i = 0; i < in->sizes.len;) {
        struct group g = {
            .call = sizes[i].call, .object_bytes = sizes[i].object_bytes, .pages = sizes[i].pages};
        for (; i < in->sizes.len && sizes[i].call == g.call && sizes[i].object_bytes == g.object_bytes; i++)
            add_size(&g, &sizes[i], in->page_bytes);
        if (!g.object_bytes || g.most_bytes > g.object_bytes)
            continue; /* no allocator makes such an object */
        less_bytes(a, in, &g);
        own_cache(a, in, &g);
        exact_pages(a, in, &g);
    }
    free(sizes);
}
