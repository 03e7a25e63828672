/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/profile/address_info.h"

#include <math.h>

/* A block of either list of a profile: a live sample or a recent free. */
struct extent {
    uint64_t address, size_bytes, slack_bytes;
    uint64_t time_ns; /* time of its free, 0 if live; of blocks equally near, the latest is preferred */
    uint32_t image;
};

static struct extent extent_of(const struct profile *p, bool live, uint32_t index)
{
    if (live) {
        const struct profile_sample *s = &p->samples.at[index];
        return (struct extent){s->address, s->size_bytes,
                               s->slack_bytes == PROFILE_SLACK_UNKNOWN ? 0 : s->slack_bytes, 0,
                               p->cells.at[s->cell].image};
    }
    const struct profile_free *f = &p->frees.at[index];
    return (struct extent){f->address, f->size_bytes, 0, f->freed_ns, p->cells.at[f->cell].image};
}

static uint64_t sum(uint64_t a, uint64_t b)
{
    return a + b < a ? UINT64_MAX : a + b; /* saturates: values from a file may be arbitrary */
}

/* Returns the bytes of the block with its slack; at least 1, because malloc(0) returned an address, too. */
static uint64_t room(const struct extent *b)
{
    uint64_t bytes = sum(b->size_bytes, b->slack_bytes);
    return bytes ? bytes : 1;
}

/* Sets the position of the address relative to the block. Returns false if the two are too far apart. */
static bool locate(const struct extent *b, uint64_t address, struct address_info_block *out)
{
    if (address < b->address) {
        out->place = ADDRESS_INFO_BEFORE;
        out->bytes = b->address - address;
        return out->bytes <= ADDRESS_INFO_NEAR_BYTES;
    }
    uint64_t offset = address - b->address, extent = room(b);
    bool inside = offset < b->size_bytes || !offset;
    out->place = inside ? ADDRESS_INFO_INSIDE : offset < extent ? ADDRESS_INFO_SLACK : ADDRESS_INFO_BEHIND;
    out->bytes = inside ? offset : offset - b->size_bytes;
    return out->place != ADDRESS_INFO_BEHIND || offset - extent < ADDRESS_INFO_NEAR_BYTES;
}

static bool holds(const struct address_info_block *b)
{
    return b->place == ADDRESS_INFO_INSIDE || b->place == ADDRESS_INFO_SLACK;
}

/* ---- neighbours ---- */

/* Returns the distance in bytes from the address to the nearest byte of the block; 1 if it is next to the block. */
static uint64_t distance(const struct profile *p, const struct address_info_block *b)
{
    struct extent it = extent_of(p, b->live, b->index);
    return b->place == ADDRESS_INFO_BEFORE ? b->bytes : b->bytes + it.size_bytes - room(&it) + 1;
}

static void offer_near(struct address_info *w, const struct profile *p, const struct address_info_block *b)
{
    struct extent it = extent_of(p, b->live, b->index);
    vec_each (struct address_info_block, other, &w->near) {
        struct extent known = extent_of(p, other->live, other->index);
        if (other->live != b->live || other->place != b->place || known.image != it.image)
            continue;
        uint64_t mine = distance(p, b), theirs = distance(p, other);
        if (mine < theirs || (mine == theirs && it.time_ns > known.time_ns))
            *other = *b;
        return;
    }
    *vec_push(&w->near) = *b;
}

static void compare_block(struct address_info *w, const struct profile *p, bool live, uint32_t index)
{
    struct address_info_block b = {.live = live, .index = index};
    struct extent it = extent_of(p, live, index);
    if (!locate(&it, w->address, &b))
        return;
    if (holds(&b))
        *vec_push(&w->holding) = b;
    else
        offer_near(w, p, &b);
}

/* ---- order ---- */

static int compare(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int by_time(const void *a, const void *b, void *profile)
{
    const struct address_info_block *one = a, *other = b;
    const struct profile *p = profile;
    if (one->live != other->live)
        return one->live ? -1 : 1;
    struct extent x = extent_of(p, one->live, one->index), y = extent_of(p, other->live, other->index);
    int later = compare(y.time_ns, x.time_ns);
    return later ? later : compare(one->index, other->index);
}

static int by_distance(const void *a, const void *b, void *profile)
{
    const struct address_info_block *one = a, *other = b;
    const struct profile *p = profile;
    if (one->live != other->live)
        return one->live ? -1 : 1;
    int nearer = compare(distance(p, one), distance(p, other));
    return nearer ? nearer : by_time(a, b, profile);
}

void address_info_find(struct address_info *w, const struct profile *p, uint64_t address)
{
    *w = (struct address_info){.address = address};
    for (uint32_t i = 0; i < p->samples.len; i++)
        compare_block(w, p, true, i);
    for (uint32_t i = 0; i < p->frees.len; i++)
        compare_block(w, p, false, i);
    if (w->holding.len)
        w->near.len = 0;
    if (w->holding.len > 1)
        qsort_r(w->holding.at, w->holding.len, sizeof(*w->holding.at), by_time, (void *)p);
    if (w->near.len > 1)
        qsort_r(w->near.at, w->near.len, sizeof(*w->near.at), by_distance, (void *)p);
}

void address_info_release(struct address_info *w)
{
    vec_release(&w->holding);
    vec_release(&w->near);
}

/* ---- frees ---- */

uint64_t address_info_freed_before_ns(const struct profile *p, const struct profile_free *f)
{
    uint64_t taken = p->images.at[p->cells.at[f->cell].image].taken_ns;
    return taken > f->freed_ns ? taken - f->freed_ns : 0;
}

struct address_info_frees address_info_frees_of(const struct profile *p)
{
    struct address_info_frees k = {.remembered = p->frees.len};
    vec_each (const struct profile_cell, c, &p->cells)
        k.freed = sum(k.freed, c->freed.samples);
    vec_each (const struct profile_free, f, &p->frees) {
        uint64_t before = address_info_freed_before_ns(p, f);
        k.reach_ns = before > k.reach_ns ? before : k.reach_ns;
    }
    if (k.freed < k.remembered) /* a free was under way: the sums are read before the list */
        k.freed = k.remembered;
    return k;
}

static int latest_first(const void *a, const void *b, void *profile)
{
    const struct profile *p = profile;
    uint32_t one = *(const uint32_t *)a, other = *(const uint32_t *)b;
    int later = compare(p->frees.at[other].freed_ns, p->frees.at[one].freed_ns);
    return later ? later : compare(one, other);
}

uint32_t *address_info_latest_frees(const struct profile *p)
{
    uint32_t *order = mem_array(p->frees.len, sizeof(*order));
    for (uint32_t i = 0; i < p->frees.len; i++)
        order[i] = i;
    if (p->frees.len > 1)
        qsort_r(order, p->frees.len, sizeof(*order), latest_first, (void *)p);
    return order;
}

double address_info_chance(uint64_t size_bytes, uint64_t period_bytes)
{
    if (period_bytes <= 1)
        return 1;
    return -expm1(-(double)(size_bytes ? size_bytes : 1) / (double)period_bytes);
}
