/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UNWIND_WALK_CACHE_H
#define UNWIND_WALK_CACHE_H

/*
 * The frames of the last walk that began at the same place, for the next walk of the same thread. Two such walks seldom
 * differ in more than the innermost frames: the second one ends at the first frame that it has in common with the
 * cache.
 *
 * Runs in: target.
 * Threads: one at a time, and no signal handler while its thread is in here. Plain memory, zero at first.
 *
 * The start of a walk, and the words of the stack that the walk reads, determine its frames as long as no module on the
 * stack can be unloaded. These words are the return addresses, and the saved rbp if a rule uses rbp. So if the walk
 * arrives at a cached frame, with the same stack pointer and the same return address, and these words are the same from
 * there outwards, then the rest of its frames are the cached ones. The words are compared from this frame outwards.
 * That is faster than a walk, because the addresses of all of them are known before the first one is read.
 *
 * Invariant: a word is read only after all words that the walk would read before it were found equal. So the cache
 * reads no memory that the walk would not read: cached frames that are gone may lie in memory that is unmapped or
 * protected now, also inside the thread's own stack.
 *
 * Frames that need more registers than rsp and rbp, frames of modules that can be unloaded, and all frames inside of
 * these are not cached.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sigsafe/compiler.h"
#include "unwind/stack_bounds.h"

#define WALK_CACHE_MAX  128u
#define WALK_CACHE_END  (WALK_CACHE_MAX + 1)
#define WALK_CACHE_NONE UINT32_MAX

struct walk_cache_place {
    uintptr_t sp, pc; /* of the frame; pc is its return address, the word below sp */
};

/* A frame whose rule uses rbp. */
struct walk_cache_fp {
    const struct walk_cache_place *place;
    /* the slot that a cached frame saved rbp in; NULL or a slot below the cached frames: none did */
    const uintptr_t *at;
    uintptr_t value;
};

struct walk_cache {
    /* the last one differs from each stack: a comparison ends there */
    struct walk_cache_place at[WALK_CACHE_END + 1];
    uint64_t hash[WALK_CACHE_END + 1]; /* of the frames from here outwards */
    uint32_t id[WALK_CACHE_END];
    uint32_t generation; /* of the numbers of its frames */
    uintptr_t high;      /* end of the stack that its frames lie on */
    unsigned top;        /* [top, WALK_CACHE_END) are kept, the innermost first */
    uint32_t stack;      /* the owner's number of the stack from `top` outwards; WALK_CACHE_NONE: none yet */
    unsigned fps;
    /* [0]: for the last place; the others: the outermost first */
    struct walk_cache_fp fp[WALK_CACHE_MAX + 1];
} __attribute__((aligned(4096))); /* the fields that each walk uses lie in one page */

/* The same of the walk under way. */
struct walk_fp {
    unsigned frame;
    const uintptr_t *at;
    uintptr_t value;
};

/* The walk under way. */
struct walk_cache_walk {
    unsigned meet; /* the next cached frame that it may meet, or the one that it met; WALK_CACHE_END: none */
    unsigned passed; /* number of its frames, from the innermost, that cannot be cached */
    bool whole;      /* it met a cached frame, or came to the outermost frame in the hot loop */
    unsigned fps;
    const uintptr_t *brought_fp_at; /* where rbp lies that a frame within those of the hot loop had */
    const uintptr_t *met_fp_at; /* where it had been saved by the frame that the walk met; NULL: by none */
    uintptr_t sp[WALK_CACHE_MAX];
    uint32_t id[WALK_CACHE_MAX];
    struct walk_fp fp[WALK_CACHE_MAX]; /* the innermost first */
};

#define WALK_CACHES_LOG2 3u
struct walk_caches {
    struct walk_cache at[1u << WALK_CACHES_LOG2];
    struct walk_cache_walk walk;
};

/** The cache for walks that begin with this pc and stack pointer. */
static inline struct walk_cache *walk_cache_for(struct walk_caches *all, uintptr_t pc, uintptr_t sp)
{
    return &all->at[(pc ^ sp >> 4) * 0x9e3779b97f4a7c15u >> (64 - WALK_CACHES_LOG2)];
}

static inline uint64_t walk_cache_hash(uint64_t outer, uint32_t id)
{
    uint64_t h = (outer ^ id) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 32;
}

/**
 * The first frame that a walk may meet on the stack that ends at `high`. WALK_CACHE_END: none, as the cache is of
 * another stack or generation.
 */
static inline unsigned walk_cache_first(const struct walk_cache *t, uintptr_t high, uint32_t generation)
{
    return likely(t->high == high && t->generation == generation) ? t->top : WALK_CACHE_END;
}

/** The stack pointer of a frame that a walk may meet. */
static inline uintptr_t walk_cache_meets(const struct walk_cache *t, unsigned meet)
{
    return meet < WALK_CACHE_END ? t->at[meet].sp : UINTPTR_MAX;
}

/**
 * The walk is at the stack pointer of the cached frame `from`, with this pc, and rbp saved at `fp_at`. Returns the
 * first frame from there outwards that is not known to be as it was; WALK_CACHE_END: all are.
 */
static inline unsigned walk_cache_first_changed(const struct walk_cache *t, unsigned from, uintptr_t pc,
                                                const uintptr_t *fp_at)
{
    const struct walk_cache_place *place = &t->at[from];
    const struct walk_cache_fp *fp = &t->fp[t->fps];
    const uintptr_t first_sp = place->sp;
    if (place->pc != pc)
        return from;
    while (fp->place < place)
        fp--;
    for (;; fp--) {
        /* Up to the next frame that uses rbp, each caller is found by the stack pointer alone. */
        const struct walk_cache_place *last = fp->place;
        while (place != last) {
            place++;
            if (unlikely(*(const uintptr_t *)(place->sp - sizeof(uintptr_t)) != place->pc))
                return (unsigned)(place - t->at);
        }
        if (unlikely(*((uintptr_t)fp->at < first_sp ? fp_at : fp->at) != fp->value))
            return (unsigned)(place - t->at);
    }
}

/* NULL for a slot that no frame of the hot loop saved rbp in: where such a slot lies says nothing of its frame. */
static inline const uintptr_t *walk_cache_known_slot(const struct walk_cache_walk *w, const uintptr_t *at)
{
    return at == w->brought_fp_at ? NULL : at;
}

/** Begins a walk, which may meet the frame `meet` first; the rbp of its first frame is at `fp_at`. */
static inline void walk_cache_begin(struct walk_cache_walk *w, unsigned meet, const uintptr_t *fp_at)
{
    w->meet = meet;
    w->passed = w->fps = 0;
    w->brought_fp_at = fp_at;
    w->whole = false;
}

/** The walk's frame uses rbp, saved at `at`. */
static inline void walk_cache_uses_fp(struct walk_cache_walk *w, unsigned frame, const uintptr_t *at)
{
    w->fp[w->fps++] = (struct walk_fp){frame, walk_cache_known_slot(w, at), *at};
}

/**
 * The walk is at sp, not below walk_cache_meets(), with this pc, and rbp saved at `fp_at`. Returns true if all frames
 * from here outwards are cached. Otherwise `*meets` becomes the stack pointer of the next frame that it may meet.
 */
ONE_COPY bool walk_cache_met(const struct walk_cache *t, struct walk_cache_walk *w, uintptr_t pc,
                             uintptr_t sp, const uintptr_t *fp_at, uintptr_t *meets);
/**
 * Puts the `added` frames of the walk before the one it met, and caches those of them that can be. Returns the first
 * frame of the walk: all its frames are [that, WALK_CACHE_END) of `id`. WALK_CACHE_END: they are too many.
 */
ONE_COPY unsigned walk_cache_join(struct walk_cache *t, const struct walk_cache_walk *w, uintptr_t pc,
                                  uintptr_t high, uint32_t generation, unsigned added);

#endif
