/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Slabs that could be free or smaller. What "shrink" would free is bounded, because the kernel tells how many objects
 * are in use in all partly filled slabs together, and not in each.
 */
#include "model/kernel/advice/advice_parts.h"

#include <inttypes.h>
#include <string.h>

/* Orders beyond PAGE_ALLOC_COSTLY_ORDER are never the kernel's own choice. */
#define ORDER_MOST 3u
#define ROWS_MOST  8
/* Objects are aligned to pointers. One that should lose more than this share of it is another object. */
#define OBJECT_ALIGN 8u
#define LESS_SHARE   8
/* Before 6.8 the parameters began with "slub_". */
#define NEW_NAMES_MAJOR 6u
#define NEW_NAMES_MINOR 8u

/*
 * Slabs that "shrink" frees: those without an object in use. A slab on a node's list of partly filled ones has at most
 * all its objects but one in use, so that `partial_used` objects need at least partial_used / (per_slab - 1) slabs, and
 * at most one slab each. A node keeps an empty slab only while its list has less than min_partial slabs. What CPUs keep
 * goes back to the lists first; nothing is known of its fill.
 */
static void free_slabs(const struct advice_cache *c, uint64_t *low, uint64_t *high)
{
    const uint64_t used = advice_less(c->partial_used, c->sheaf_objects);
    const uint64_t need = c->per_slab > 1 ? advice_slabs_for(used, c->per_slab - 1) : used;
    const uint64_t kept = advice_times(c->min_partial, c->nodes);
    *low = advice_less(c->partial, c->partial_used);
    *high = advice_less(c->partial, need);
    if (!c->sheaf_objects && *high > kept)
        *high = kept;
    *high += c->cpu_slabs + c->sheaf_objects / c->per_slab;
    *high = *high < c->slabs ? *high : c->slabs;
    *low = *low < *high ? *low : *high;
}

static void shrink(struct advice *a, const struct advice_input *in, size_t cache)
{
    const struct advice_cache *c = &in->caches.at[cache];
    uint64_t low, high;
    free_slabs(c, &low, &high);
    struct advice_measure *m =
        advice_add(a, ADVICE_SHRINK, advice_times(low, c->slab_bytes), advice_times(high, c->slab_bytes));
    if (!m)
        return;
    m->reclaimable = c->reclaimable;
    advice_change(m, "echo 1 > /sys/kernel/slab/%s/shrink", c->name);
    advice_formula(m,
                   "%" PRIu64 " to %" PRIu64 " slabs x %" PRIu64 " B; of %" PRIu64 " slabs, %" PRIu64
                   " are partly filled, with %" PRIu64 " objects in use (%" PRIu64 " fill one), and %" PRIu64
                   " belong to CPUs",
                   low, high, c->slab_bytes, c->slabs, c->partial, c->partial_used, c->per_slab,
                   c->cpu_slabs);
    advice_cost(m, "one pass over the cache, once; the slabs come back with the next load");
    advice_row(m, "%s: %" PRIu64 " objects of %" PRIu64 " B in use, room for %" PRIu64, c->name, c->used,
               c->object_bytes, c->room);
    advice_claim_cache(m, in, cache);
}

static void cpu_partial(struct advice *a, const struct advice_input *in, size_t cache)
{
    const struct advice_cache *c = &in->caches.at[cache];
    if (!c->cpu_partial)
        return;
    struct advice_measure *m =
        advice_add(a, ADVICE_CPU_PARTIAL, 0, advice_times(c->cpu_partial_slabs, c->slab_bytes));
    if (!m)
        return;
    m->reclaimable = c->reclaimable;
    advice_change(m, "echo 0 > /sys/kernel/slab/%s/cpu_partial", c->name);
    advice_formula(m, "0 to %" PRIu64 " slabs x %" PRIu64 " B that CPUs keep partly filled",
                   c->cpu_partial_slabs, c->slab_bytes);
    advice_cost(m, "frees on several CPUs wait for each other more often");
    advice_row(m, "%s: cpu_partial is %" PRIu64, c->name, c->cpu_partial);
    advice_claim_cache(m, in, cache);
}

/* ---- what is left over in each slab ---- */

/* One more object would fit if each were a little smaller. Buckets of kmalloc() have the size of their names. */
static void tail(struct advice *a, const struct advice_input *in, size_t cache)
{
    const struct advice_cache *c = &in->caches.at[cache];
    const uint64_t align = c->align > OBJECT_ALIGN ? c->align : OBJECT_ALIGN, more = c->per_slab + 1;
    const uint64_t fits = c->slab_bytes / more / align * align;
    if (!fits || fits >= c->object_bytes || c->object_bytes - fits > c->object_bytes / LESS_SHARE ||
        !strncmp(c->name, "kmalloc", 7))
        return;
    const uint64_t before = advice_times(c->used, c->slab_bytes);
    const uint64_t low = advice_less(c->used / c->per_slab, advice_slabs_for(c->used, more));
    struct advice_measure *m = advice_add(a, ADVICE_TAIL, (int64_t)advice_times(low, c->slab_bytes),
                                          before / c->per_slab - before / more);
    if (!m)
        return;
    m->reclaimable = c->reclaimable;
    advice_change(m, "make the objects of %s %" PRIu64 " bytes smaller: one more fits each slab", c->name,
                  c->object_bytes - fits);
    advice_formula(m,
                   "%" PRIu64 " objects in use x %" PRIu64 " B of a slab x (1 / %" PRIu64 " - 1 / %" PRIu64
                   "); low: whole slabs only",
                   c->used, c->slab_bytes, c->per_slab, more);
    advice_cost(m, "a change of the structure: a smaller field, another order of its fields, or a part of it "
                   "elsewhere");
    advice_row(m,
               "%s: in each slab %" PRIu64 " objects of %" PRIu64 " B, aligned to %" PRIu64 ", and %" PRIu64
               " B left over",
               c->name, c->per_slab, c->object_bytes, align,
               advice_less(c->slab_bytes, advice_times(c->per_slab, c->object_bytes)));
    advice_claim_cache(m, in, cache);
}

/* ---- smaller slabs ---- */

/* The slabs of a cache at another order: for as many objects as they have room for now, and for those in use alone. */
static void at_order(const struct advice_cache *c, uint64_t page_bytes, unsigned order, uint64_t *same_room,
                     uint64_t *packed)
{
    const unsigned needed = advice_order_of(page_bytes, c->object_bytes);
    const uint64_t slab = page_bytes << (order > needed ? order : needed);
    const uint64_t objects = slab / c->object_bytes ? slab / c->object_bytes : 1;
    *same_room = advice_times(advice_slabs_for(c->room, objects), slab);
    *packed = advice_times(advice_slabs_for(c->used, objects), slab);
}

static bool becomes_smaller(const struct advice_cache *c, uint64_t page_bytes, unsigned order)
{
    return c->order > order && c->slabs && !c->reclaimable &&
           c->order > advice_order_of(page_bytes, c->object_bytes);
}

/*
 * Smaller slabs waste more behind their last object, which is the price (low) if all of the room is needed again. But a
 * slab of fewer objects is free more often: at best (high) the objects in use fill theirs.
 */
static void order_most(struct advice *a, const struct advice_input *in, unsigned order)
{
    uint64_t now = 0, same_room = 0, packed = 0, n = 0;
    vec_each (const struct advice_cache, c, &in->caches) {
        uint64_t room, used;
        if (!becomes_smaller(c, in->page_bytes, order))
            continue;
        at_order(c, in->page_bytes, order, &room, &used);
        now += advice_times(c->slabs, c->slab_bytes);
        same_room += room;
        packed += used;
        n++;
    }
    if (now <= packed || same_room - now > now - packed) /* it costs more than it may save */
        return;
    struct advice_measure *m = advice_add(a, ADVICE_ORDER, (int64_t)(now - same_room), now - packed);
    if (!m)
        return;
    const bool new_names = in->major > NEW_NAMES_MAJOR ||
                           (in->major == NEW_NAMES_MAJOR && in->minor >= NEW_NAMES_MINOR) || !in->major;
    advice_change(m, "boot with %s_max_order=%u", new_names ? "slab" : "slub", order);
    advice_formula(m,
                   "%" PRIu64 " B in slabs of a higher order - %" PRIu64
                   " B with the same room for objects (low), or - %" PRIu64
                   " B for the objects in use (high), in %" PRIu64 " caches; reclaimable caches are left out",
                   now, same_room, packed, n);
    advice_cost(m, "slabs hold fewer objects, so that the allocator takes its locks more often");
    for (size_t i = 0; i < in->caches.len; i++) {
        const struct advice_cache *c = &in->caches.at[i];
        if (!becomes_smaller(c, in->page_bytes, order))
            continue;
        advice_claim_cache(m, in, i);
        if (m->rows.len < ROWS_MOST)
            advice_row(m,
                       "%s: order %u, %" PRIu64 " slabs, in each %" PRIu64 " objects of %" PRIu64
                       " B and %" PRIu64 " B left over",
                       c->name, c->order, c->slabs, c->per_slab, c->object_bytes,
                       advice_less(c->slab_bytes, advice_times(c->per_slab, c->object_bytes)));
    }
}

/* ---- what memory pressure empties ---- */

/* Of the dentries it is known how many are unused: the others can be in no more slabs than there are of them. */
static uint64_t reclaimed_at_least(const struct advice_cache *c, const struct advice_input *in)
{
    if (strcmp(c->name, "dentry") != 0 || !in->dentries_unused.known || !in->dentries.known)
        return 0;
    const uint64_t stay = advice_less(c->used, in->dentries_unused.value);
    return advice_times(advice_less(c->slabs, stay), c->slab_bytes);
}

static void reclaimable(struct advice *a, const struct advice_input *in)
{
    uint64_t low = 0, high = 0, n = 0;
    vec_each (const struct advice_cache, c, &in->caches)
        if (c->reclaimable) {
            low += reclaimed_at_least(c, in);
            high += advice_times(c->slabs, c->slab_bytes);
            n++;
        }
    struct advice_measure *m = advice_add(a, ADVICE_RECLAIM, low, high);
    if (!m)
        return;
    m->reclaimable = true;
    advice_change(
        m, "no change: memory pressure empties these caches (echo 2 > /proc/sys/vm/drop_caches does so now)");
    advice_formula(m, "slabs x their size, of %" PRIu64 " reclaimable caches%s", n,
                   low ? "; low: dentries that are in use stay, each in a slab of its own"
                       : "; low: nothing is unused");
    advice_cost(m, "names and inodes of files are read again when they are needed");
    vec_each (const struct advice_cache, c, &in->caches)
        if (c->reclaimable && c->slabs && m->rows.len < ROWS_MOST)
            advice_row(m, "%s: %" PRIu64 " slabs x %" PRIu64 " B", c->name, c->slabs, c->slab_bytes);
}

void advice_find_slabs(struct advice *a, const struct advice_input *in)
{
    if (!in->caches.len) {
        advice_unknown(
            a, "Slab caches: /sys/kernel/slab could not be read, which needs root and SLUB; or the recording "
               "lacks it");
        return;
    }
    for (size_t i = 0; i < in->caches.len; i++) {
        shrink(a, in, i);
        cpu_partial(a, in, i);
        tail(a, in, i);
    }
    for (unsigned order = 0; order < ORDER_MOST; order++)
        order_most(a, in, order);
    reclaimable(a, in);
}
