/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind/walk_cache.h"

#include <stddef.h>

bool walk_cache_met(const struct walk_cache *t, struct walk_cache_walk *w, uintptr_t pc, uintptr_t sp,
                    const uintptr_t *fp_at, uintptr_t *meets)
{
    while (w->meet < WALK_CACHE_END && t->at[w->meet].sp < sp)
        w->meet++;
    if (w->meet < WALK_CACHE_END && t->at[w->meet].sp == sp) {
        unsigned changed = walk_cache_first_changed(t, w->meet, pc, fp_at);
        w->whole = changed == WALK_CACHE_END;
        if (w->whole) {
            w->met_fp_at = walk_cache_known_slot(w, fp_at);
            return true;
        }
        w->meet = changed + 1;
    }
    *meets = walk_cache_meets(t, w->meet);
    return false;
}

/* Adds the frames of the new walk that use rbp. Cached frames that use an rbp that no cached frame has saved get the
 * address at which the new walk found this rbp (w->met_fp_at). */
static void join_fps(struct walk_cache *t, const struct walk_cache_walk *w, unsigned from)
{
    struct walk_cache_place *last = &t->at[WALK_CACHE_END];
    last->sp = (uintptr_t)&last->pc; /* the word at sp - 8 is `sp` itself: it differs from `pc`, 0 */
    t->fp[0].place = last;
    while (t->fps && t->fp[t->fps].place < &t->at[w->meet])
        t->fps--;
    for (unsigned i = t->fps; i && (uintptr_t)t->fp[i].at < t->at[w->meet].sp; i--)
        t->fp[i].at = w->met_fp_at;
    for (unsigned i = w->fps; i-- > 0 && w->fp[i].frame >= w->passed;)
        t->fp[++t->fps] = (struct walk_cache_fp){&t->at[from + w->fp[i].frame], w->fp[i].at, w->fp[i].value};
}

unsigned walk_cache_join(struct walk_cache *t, const struct walk_cache_walk *w, uintptr_t pc, uintptr_t high,
                         uint32_t generation, unsigned added)
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
    t->high = high;
    t->generation = generation;
    return from;
}
