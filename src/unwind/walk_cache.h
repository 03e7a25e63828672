/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UNWIND_WALK_CACHE_H
#define UNWIND_WALK_CACHE_H

/*
 * Caches the frames of a thread's previous walk that began with the same pc and stack pointer. Two such walks seldom
 * differ in more than the innermost frames, so the next walk can end at the first frame that is in the cache and is
 * unchanged, with all its callers. (A cache is selected by a hash, so other walks of the thread may use the same one.)
 *
 * Runs in: target. Threads: each has caches of its own. A signal handler must not use them if the code that it
 * interrupted may be using them. Zero at first.
 *
 * The result of a walk depends only on its start and on the words of the stack that it reads: the return addresses, and
 * each saved rbp that a rule uses. When a walk arrives at the stack pointer and return address of a cached frame, it
 * compares these words, from this frame outwards, with those of the previous walk. If all are equal, the rest of the
 * frames are the cached ones. The comparison is faster than a walk, because the addresses of all words are known before
 * the first one is read.
 *
 * Invariant: the comparison stops at the first word that differs, and so reads no word that the walk would not read.
 * More must not be read: a frame of the previous walk may lie in memory that has been unmapped or protected since.
 *
 * Walks are cached if they reached the outermost frame, on a stack that is not checked page by page (stack_bounds.h).
 * Not cached are frames with rules of other kinds than RULE_RSP, RULE_RBP and RULE_LAST, frames of modules that can be
 * unloaded (another module may be at the same address now), and the frames that such a frame has called.
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
    uintptr_t sp, pc; /* stack pointer and pc of the frame; pc is the return address at sp - 8 */
};

/* A cached frame whose rule uses rbp. */
struct walk_cache_fp {
    const struct walk_cache_place *place;
    /* where a cached frame saved this rbp; NULL or an address below the cached frames: none of them saved it, but an
     * inner frame, which is not cached, may have done so */
    const uintptr_t *at;
    uintptr_t value;
};

struct walk_cache {
    /* the last place is a sentinel: it never equals the stack, so each comparison ends there */
    struct walk_cache_place at[WALK_CACHE_END + 1];
    uint64_t hash[WALK_CACHE_END + 1]; /* hash[i]: of the numbers of frame i and all its callers */
    uint32_t id[WALK_CACHE_END];
    uint32_t generation; /* of the frame numbers in `id` (see walk_along()) */
    uintptr_t high;      /* end of the stack on which the cached frames lie */
    unsigned top;        /* the frames top to WALK_CACHE_END - 1 are cached, the innermost first */
    uint32_t stack;      /* number of the stack from `top` outwards in the ledger; WALK_CACHE_NONE: unknown */
    unsigned fps;        /* fp[1] to fp[fps] are in use */
    /* fp[0] belongs to the sentinel; then the outermost frame first */
    struct walk_cache_fp fp[WALK_CACHE_MAX + 1];
} __attribute__((aligned(4096))); /* all fields lie in one page, except most of `fp` */

/* A frame of the current walk whose rule uses rbp. */
struct walk_fp {
    unsigned frame;
    const uintptr_t *at;
    uintptr_t value;
};

/* The current walk. */
struct walk_cache_walk {
    unsigned meet;   /* the next cached frame that the walk may reach, or did reach; WALK_CACHE_END: none */
    unsigned passed; /* the number of innermost frames that cannot be cached */
    bool whole;      /* the walk reached an unchanged cached frame, or a RULE_LAST frame in the hot loop */
    unsigned fps;
    const uintptr_t *brought_fp_at; /* address of the saved rbp when the hot loop began or resumed */
    const uintptr_t *met_fp_at;     /* address of the saved rbp when the walk reached `meet`; NULL: unknown */
    uintptr_t sp[WALK_CACHE_MAX];
    uint32_t id[WALK_CACHE_MAX];
    struct walk_fp fp[WALK_CACHE_MAX]; /* the innermost first */
};

#define WALK_CACHES_LOG2 3u
struct walk_caches {
    struct walk_cache at[1u << WALK_CACHES_LOG2];
    struct walk_cache_walk walk;
};

/** Returns the cache for walks that begin with this pc and stack pointer. */
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
 * Returns the index of the innermost cached frame, for a walk on the stack that ends at `high`. WALK_CACHE_END: the
 * cache is empty, or holds frames of another stack or generation.
 */
static inline unsigned walk_cache_first(const struct walk_cache *t, uintptr_t high, uint32_t generation)
{
    return likely(t->high == high && t->generation == generation) ? t->top : WALK_CACHE_END;
}

/** Returns the stack pointer of the cached frame `meet`. UINTPTR_MAX: there is no such frame. */
static inline uintptr_t walk_cache_meets(const struct walk_cache *t, unsigned meet)
{
    return meet < WALK_CACHE_END ? t->at[meet].sp : UINTPTR_MAX;
}

/**
 * Compares the cached frame `from` and its callers with the stack. The walk is at the stack pointer of `from`, with
 * this pc, and rbp is saved at `fp_at`. Returns the index of the first frame that differs; WALK_CACHE_END: none does.
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
        /* Up to the next frame that uses rbp, only return addresses need to be compared. */
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

/* Returns `at`; NULL if rbp was at `at` already when the hot loop began or resumed: no frame since has saved it. */
static inline const uintptr_t *walk_cache_known_slot(const struct walk_cache_walk *w, const uintptr_t *at)
{
    return at == w->brought_fp_at ? NULL : at;
}

/** Begins a walk. `meet`: first cached frame that the walk may reach; `fp_at`: address of the first frame's rbp. */
static inline void walk_cache_begin(struct walk_cache_walk *w, unsigned meet, const uintptr_t *fp_at)
{
    w->meet = meet;
    w->passed = w->fps = 0;
    w->brought_fp_at = fp_at;
    w->whole = false;
}

/** Records that the rule of the walk's frame `frame` (0: the innermost) uses rbp, which is saved at `at`. */
static inline void walk_cache_uses_fp(struct walk_cache_walk *w, unsigned frame, const uintptr_t *at)
{
    w->fp[w->fps++] = (struct walk_fp){frame, walk_cache_known_slot(w, at), *at};
}

/**
 * Called when the stack pointer of the walk is walk_cache_meets() or higher; rbp is saved at `fp_at`. Returns true if
 * the frame of this pc and sp and all its callers are cached and unchanged. Otherwise sets *meets to the stack pointer
 * of the next cached frame that the walk may reach (UINTPTR_MAX: none).
 */
ONE_COPY bool walk_cache_met(const struct walk_cache *t, struct walk_cache_walk *w, uintptr_t pc,
                             uintptr_t sp, const uintptr_t *fp_at, uintptr_t *meets);
/**
 * Stores the `added` frames that the walk went through before it reached the cached frame w->meet (or the end of the
 * stack); they replace the cached frames before w->meet. Returns the index of the walk's innermost frame: the walk's
 * frames have the numbers id[index] to id[WALK_CACHE_END - 1]. WALK_CACHE_END: too many frames; the cache is unchanged.
 */
ONE_COPY unsigned walk_cache_join(struct walk_cache *t, const struct walk_cache_walk *w, uintptr_t pc,
                                  uintptr_t high, uint32_t generation, unsigned added);

#endif
