/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/kernel/frag.h"

static void add(struct frag_range *sum, const struct frag_range *r)
{
    if (!r->known)
        return;
    sum->known = true;
    sum->low += r->low;
    sum->high += r->high;
}

static int by_loss(const void *a, const void *b)
{
    const struct frag_cache *x = a, *y = b;
    if (x->lost.high != y->lost.high)
        return x->lost.high < y->lost.high ? 1 : -1;
    return strcmp(x->of->name, y->of->name);
}

static void add_caches(struct frag *f, const struct memory_state *s)
{
    vec_each (const struct memory_cache, of, &s->caches) {
        struct frag_cache *c = vec_push(&f->caches);
        frag_cache_compute(c, of, s);
        for (int i = 0; i < FRAG_SLAB_PARTS; i++)
            add(&f->slab[i], &c->at[i]);
        add(&f->slab_lost, &c->lost);
        if (memory_cache_has(of, CACHE_RECLAIMABLE) && !of->at[CACHE_RECLAIMABLE])
            f->unreclaimable_bytes += c->at[FRAG_BYTES].high;
    }
    if (f->caches.len)
        qsort(f->caches.at, f->caches.len, sizeof(*f->caches.at), by_loss);
}

/*
 * Slab: of meminfo is the sum of two counters, which the kernel brings up to date when a CPU's share of the change
 * exceeds a threshold. Slabinfo is read at the same time; to read /sys/kernel/slab for the first time takes some MiB of
 * slabs for its files.
 */
static void check_whole(struct frag *f, const struct memory_state *s, const struct frag_range *large)
{
    struct frag_whole *w = &f->whole;
    w->slab_bytes = s->slabinfo_pages && s->slabinfo_pages <= UINT32_MAX
                        ? frag_exact(s->slabinfo_pages * s->page_bytes)
                        : f->slab[FRAG_BYTES];
    w->large_bytes = *large;
    if (memory_state_has(s, MEMORY_SLAB))
        w->meminfo_bytes = frag_exact(s->figures[MEMORY_SLAB]);
    if (w->slab_bytes.known && w->meminfo_bytes.known)
        w->rest_bytes =
            (int64_t)w->meminfo_bytes.high - (int64_t)w->slab_bytes.high - (int64_t)w->large_bytes.high;
    w->rest_max_bytes = 2 * s->counter_slack_pages * s->nodes * s->page_bytes;
}

void frag_compute(struct frag *f, const struct memory_state *s, const struct frag_range *large)
{
    *f = (struct frag){.of = s};
    add_caches(f, s);
    vec_each (const struct memory_zone, z, &s->zones)
        if (z->orders)
            frag_zone_compute(vec_push(&f->zones), z, s->n_types);
    frag_vmalloc_compute(&f->vmalloc, s);
    check_whole(f, s, large);
}

void frag_release(struct frag *f)
{
    vec_release(&f->caches);
    vec_release(&f->zones);
    vec_release(&f->vmalloc.callers);
}
