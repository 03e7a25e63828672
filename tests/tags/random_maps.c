/* SPDX-License-Identifier: BSD-2-Clause */
/* Mappings, and what may become of them: parts are unmapped, moved, covered by others, by whomever. */
#define _GNU_SOURCE 1
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "random_own.h"

#define PAGE 4096ul
#define POOL 32

static _Atomic uint64_t pool[POOL]; /* that wait for whoever comes: page << 16 | pages */

static bool maps(enum kind k)
{
    return k == KIND_MMAP || k == KIND_MMAP64;
}
static bool unmaps(enum kind k)
{
    return k == KIND_MUNMAP;
}
static bool moves(enum kind k)
{
    return k == KIND_MREMAP;
}

static bool by_others(struct self *s)
{
    return random_foreign && !random_draw(s, 6);
}

static char *map(struct self *s, char *at, size_t pages)
{
    size_t bytes = pages * PAGE - random_draw(s, 3);
    void *p;
    if (!by_others(s))
        return random_place(s, maps)->function(at, bytes, 0, NULL);
    p = mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static bool unmap(struct self *s, char *at, size_t pages)
{
    size_t bytes = pages * PAGE - random_draw(s, 3);
    return !pages || !(by_others(s) ? munmap(at, bytes)
                                    : random_place(s, unmaps)->function(at, bytes, 0, NULL) != NULL);
}

static char *move(struct self *s, struct range from, size_t pages, char *to)
{
    size_t bytes = pages * PAGE - random_draw(s, 3);
    if (!by_others(s))
        return random_place(s, moves)->function(from.start, bytes, from.pages * PAGE, to);
    void *p =
        mremap(from.start, from.pages * PAGE, bytes, to ? MREMAP_MAYMOVE | MREMAP_FIXED : MREMAP_MAYMOVE, to);
    return p == MAP_FAILED ? NULL : p;
}

static void drop(struct self *s, struct range r)
{
    while (!unmap(s, r.start, r.pages))
        ;
}

static void keep(struct self *s, struct range r)
{
    for (unsigned i = 0; r.pages && i < RANGES; i++)
        if (!s->ranges[i].start) {
            s->ranges[i] = r;
            return;
        }
    drop(s, r);
}

static struct range part_of(struct self *s, struct range r)
{
    size_t from = random_draw(s, 2) ? 0 : random_draw(s, (uint32_t)r.pages), most = r.pages - from;
    return (struct range){r.start + from * PAGE,
                          random_draw(s, 2) ? most : 1 + random_draw(s, (uint32_t)most)};
}

/* The part is no longer what it was; the rest is. */
static void cut(struct self *s, struct range *slot, struct range part)
{
    struct range whole = *slot;
    size_t before = (size_t)(part.start - whole.start) / PAGE;
    struct range behind = {part.start + part.pages * PAGE, whole.pages - before - part.pages};
    *slot = before ? (struct range){whole.start, before} : (struct range){0};
    if (behind.pages)
        keep(s, behind);
}

static void exchange(struct self *s, struct range *slot)
{
    uint64_t mine = (uintptr_t)slot->start / PAGE << 16 | slot->pages;
    mine = atomic_exchange(&pool[random_draw(s, POOL)], mine);
    *slot = (struct range){(char *)(mine >> 16 << 12), mine & 0xffff};
}

/* Onto pages of another range that we have, which are gone by that. */
static void move_over(struct self *s, struct range *slot, struct range part)
{
    struct range *other = &s->ranges[random_draw(s, RANGES)], target;
    if (other == slot || !other->start)
        return;
    target = part_of(s, *other);
    if (move(s, part, target.pages, target.start))
        cut(s, slot, part);
}

void random_maps_step(struct self *s)
{
    struct range *slot = &s->ranges[random_draw(s, RANGES)], part;
    uint32_t what = random_draw(s, 100);
    if (what < 15) {
        exchange(s, slot);
        return;
    }
    if (!slot->start) {
        size_t pages = 1 + random_draw(s, random_draw(s, 8) ? 16 : 120);
        char *p = map(s, NULL, pages);
        *slot = p ? (struct range){p, pages} : (struct range){0};
        return;
    }
    part = part_of(s, *slot);
    if (what < 40) {
        if (unmap(s, part.start, part.pages))
            cut(s, slot, part);
    } else if (what < 70) {
        map(s, part.start, part.pages);
    } else if (what < 80) {
        move_over(s, slot, part);
    } else {
        size_t pages = 1 + random_draw(s, 2 * (uint32_t)part.pages);
        char *p = move(s, part, pages, NULL);
        if (p) {
            cut(s, slot, part);
            keep(s, (struct range){p, pages});
        }
    }
}

void random_maps_leave(struct self *s, bool leaks)
{
    for (unsigned i = 0; i < RANGES; i++) {
        struct range *slot = &s->ranges[i];
        exchange(s, slot);
        if (slot->start && (random_draw(s, 3) || !leaks)) {
            drop(s, *slot);
            *slot = (struct range){0};
        }
    }
}

void random_maps_drain(struct self *s)
{
    for (unsigned i = 0; i < RANGES + POOL; i++) {
        uint64_t r = i < POOL ? atomic_exchange(&pool[i], 0) : 0;
        if (r)
            drop(s, (struct range){(char *)(r >> 16 << 12), r & 0xffff});
        else if (i >= POOL && s->ranges[i - POOL].start)
            drop(s, s->ranges[i - POOL]);
    }
    memset(s->ranges, 0, sizeof(s->ranges));
}
