/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UNWIND_WALK_CACHE_H
#define UNWIND_WALK_CACHE_H

/*
 * The frames of a walk, kept for the next one of the same thread that begins alike. That seldom differs but in the
 * innermost few: it goes on only to where it meets a frame of the trail whose callers are the same still.
 *
 * Runs in: target. Threads: one at a time, and no signal handler while its thread is in here. Plain memory, zero at first.
 *
 * A walk is decided by where it begins and by the words of the stack that it reads: the return addresses, and rbp where a
 * rule uses it; as long as no module on it can go away. So a frame at the same stack pointer, whose return address is the
 * same and those beyond it too, has the same callers. These words are compared one by one, without waiting for each
 * before it is known where the next one is, as a walk must.
 *
 * Frames that need more than rsp and rbp, or whose modules can go away, are walked each time, and so are those within them.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/sigsafe/compiler.h"
#include "unwind/stack_bounds.h"

#define WALK_CACHE_MAX  128u
#define WALK_CACHE_END  (WALK_CACHE_MAX + 1)
#define WALK_CACHE_NONE UINT32_MAX

struct walk_cache_place {
    uintptr_t sp, pc; /* before the frame; its pc, a return address, is the word below sp */
};

/* A frame whose rule uses rbp, where that was saved and what it was. */
struct walk_cache_fp {
    unsigned frame;
    const uintptr_t *at;
    uintptr_t value;
};

struct walk_cache {
    struct walk_cache_place at[WALK_CACHE_END]; /* [top - 1] lies below every stack */
    uint64_t hash[WALK_CACHE_END + 1];          /* of the frames from here outwards */
    uint32_t id[WALK_CACHE_END];
    uint32_t generation; /* of the numbers of its frames */
    uintptr_t high;      /* end of the stack that its frames lie on */
    unsigned top;        /* [top, WALK_CACHE_END) are kept, the innermost first */
    uint32_t stack; /* what its owner calls the stack from `top` outwards; WALK_CACHE_NONE: nothing yet */
    unsigned fps;
    struct walk_cache_fp fp[WALK_CACHE_MAX]; /* the outermost first */
} __attribute__((aligned(4096)));            /* what is always used lies in one page */

/* The walk under way. */
struct walk_cache_walk {
    unsigned meet;   /* the next frame of the trail that it may meet, or has met; WALK_CACHE_END: none */
    unsigned passed; /* so many of its frames, from the innermost, cannot be kept */
    bool whole;      /* it met one, or came to the outermost frame in the ordinary way */
    unsigned fps;
    uintptr_t sp[WALK_CACHE_MAX];
    uint32_t id[WALK_CACHE_MAX];
    struct walk_cache_fp fp[WALK_CACHE_MAX]; /* the innermost first */
};

#define TRAILS_LOG2 3u
struct walk_caches {
    struct walk_cache at[1u << TRAILS_LOG2];
    struct walk_cache_walk walk;
};

/** The one for walks that begin here. */
static inline struct walk_cache *walk_cache_for(struct walk_caches *all, uintptr_t pc, uintptr_t sp)
{
    return &all->at[(pc ^ sp >> 4) * 0x9e3779b97f4a7c15u >> (64 - TRAILS_LOG2)];
}

static inline uint64_t walk_cache_hash(uint64_t outer, uint32_t id)
{
    uint64_t h = (outer ^ id) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 32;
}

/** Looks which frames have the callers they had. */
static inline void walk_cache_begin(struct walk_cache *t, struct walk_cache_walk *w, uintptr_t sp,
                                    uintptr_t high, uint32_t generation)
{
    const struct walk_cache_place *at = t->at + WALK_CACHE_END;
    if (likely(t->high == high && t->generation == generation))
        while (at[-1].sp >= sp && *(const uintptr_t *)(at[-1].sp - sizeof(uintptr_t)) == at[-1].pc)
            at--;
    t->generation = generation;
    w->meet = (unsigned)(at - t->at);
    w->passed = w->fps = 0;
    w->whole = false;
}

/** Where the walk may meet it next. */
static inline uintptr_t walk_cache_meets(const struct walk_cache *t, const struct walk_cache_walk *w)
{
    return w->meet < WALK_CACHE_END ? t->at[w->meet].sp : UINTPTR_MAX;
}

/** Do the frame that the walk may meet and its callers use the same rbp as they did? */
static inline bool walk_cache_same_fp(const struct walk_cache *t, const struct walk_cache_walk *w,
                                      const uintptr_t *fp_at)
{
    for (unsigned i = 0; i < t->fps && t->fp[i].frame >= w->meet; i++) {
        const struct walk_cache_fp *fp = &t->fp[i];
        /* Saved by a frame further in, it is whatever the walk brings along. */
        const uintptr_t *at = (uintptr_t)fp->at < t->at[w->meet].sp ? fp_at : fp->at;
        if (*at != fp->value)
            return false;
    }
    return true;
}

/** The walk's frame uses rbp, saved at `at`. */
static inline void walk_cache_uses_fp(struct walk_cache_walk *w, unsigned frame, const uintptr_t *at)
{
    w->fp[w->fps++] = (struct walk_cache_fp){frame, at, *at};
}

/**
 * The walk is at sp, not below walk_cache_meets(): does it meet a frame there, with the rbp that this one and its callers use?
 * Otherwise `*meets` is where it may next.
 */
ONE_COPY bool walk_cache_met(const struct walk_cache *t, struct walk_cache_walk *w, uintptr_t sp,
                             const uintptr_t *fp_at, uintptr_t *meets);
/**
 * Puts the `added` frames of the walk before the one it met, and what can be of them on the trail. Gives the first of all
 * its frames, which are [that, WALK_CACHE_END) of `id`; WALK_CACHE_END: they are too many.
 */
ONE_COPY unsigned walk_cache_join(struct walk_cache *t, const struct walk_cache_walk *w, uintptr_t pc,
                                  uintptr_t high, unsigned added);

#endif
