/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind/walk_cache.h"

#include <stddef.h>

bool walk_cache_met(const struct walk_cache *t, struct walk_cache_walk *w, uintptr_t sp,
                    const uintptr_t *fp_at, uintptr_t *meets)
{
    while (w->meet < WALK_CACHE_END && t->at[w->meet].sp < sp)
        w->meet++;
    if (w->meet < WALK_CACHE_END && t->at[w->meet].sp == sp) {
        w->whole = walk_cache_same_fp(t, w, fp_at);
        if (w->whole)
            return true;
        w->meet++;
    }
    *meets = walk_cache_meets(t, w);
    return false;
}

static void join_fps(struct walk_cache *t, const struct walk_cache_walk *w, unsigned from)
{
    while (t->fps && t->fp[t->fps - 1].frame < w->meet)
        t->fps--;
    for (unsigned i = w->fps; i-- > 0 && w->fp[i].frame >= w->passed;) {
        t->fp[t->fps] = w->fp[i];
        t->fp[t->fps++].frame += from;
    }
}

unsigned walk_cache_join(struct walk_cache *t, const struct walk_cache_walk *w, uintptr_t pc, uintptr_t high,
                         unsigned added)
{
    if (added >= w->meet)
        return WALK_CACHE_END;
    unsigned from = w->meet - added;
    if (t->top == from && !added)
        return from;
    for (unsigned i = added; i-- > 0;) {
        unsigned to = from + i;
        uintptr_t sp = w->sp[i];
        t->id[to] = w->id[i];
        t->hash[to] = walk_cache_hash(t->hash[to + 1], w->id[i]);
        if (i >= w->passed)
            t->at[to] = (struct walk_cache_place){sp, i ? *(const uintptr_t *)(sp - sizeof(sp)) : pc};
    }
    join_fps(t, w, from);
    t->stack = WALK_CACHE_NONE;
    t->top = from + w->passed;
    t->at[t->top - 1].sp = 0;
    t->high = high;
    return from;
}
