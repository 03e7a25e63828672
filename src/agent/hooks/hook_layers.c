/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdint.h>

#include "agent/hooks/next.h"
#include "agent/thread_state.h"

/*
 * Each request is to be counted once, whichever functions of the family call each other. An allocator we do not know is
 * asked: each of its functions is called once while this thread is marked busy. If one of our hooks is entered
 * meanwhile, that function stands on another one of the family, and is passed through uncounted from then on.
 *
 * Frees need no such care: the second one finds nothing.
 */

static bool nested(struct thread *t)
{
    bool was = t->busy == THREAD_NESTED;
    t->busy = THREAD_CALLING;
    return was;
}

static void probe_c(struct thread *t, bool aligned_too)
{
    void *p;
    next.free(next.calloc(1, 64));
    if (nested(t))
        next_entries.calloc = next.calloc;
    next.free(next.realloc(next.malloc(64), 4096));
    if (nested(t))
        next_entries.realloc = next.realloc;
    if (!aligned_too)
        return;
    if (!next.posix_memalign(&p, 64, 64))
        next.free(p);
    if (nested(t))
        next_entries.posix_memalign = next.posix_memalign;
    next.free(next.aligned_alloc(64, 64));
    if (nested(t))
        next_entries.aligned_alloc = next.aligned_alloc;
    next.free(next.memalign(64, 64));
    if (nested(t))
        next_entries.memalign = next.memalign;
    next.free(next.valloc(64));
    if (nested(t))
        next_entries.valloc = next.valloc;
    next.free(next.pvalloc(64));
    if (nested(t))
        next_entries.pvalloc = next.pvalloc;
}

/* tcmalloc allocates in malloc_usable_size when that is first called; whoever always does is not asked any more. */
static void probe_usable_size(struct thread *t)
{
    if (!next.malloc_usable_size)
        return;
    void *p = next.malloc(64);
    next.malloc_usable_size(p);
    nested(t);
    next.malloc_usable_size(p);
    if (nested(t))
        next.malloc_usable_size = NULL;
    next.free(p);
}

void hook_layers_probe(bool aligned_too)
{
    struct thread *t = &thread_self;
    uint64_t left = t->left;
    t->left = 0; /* so that a hook that is entered says so */
    t->busy = THREAD_CALLING;
    next.free(next.malloc(64)); /* first calls may set things up */
    probe_usable_size(t);
    probe_c(t, aligned_too);
    /* Aligned forms take the alignment as their second word; the others ignore it. */
#define X(field, symbol)                                                                                     \
    if (next_operators.field) {                                                                              \
        next.free(next_operators.field(64, 64, 0));                                                          \
        if (nested(t))                                                                                       \
            next.field = next_operators.field;                                                               \
    }
    NEXT_NEW_FORMS(X)
#undef X
    t->busy = THREAD_FREE;
    t->left = left;
}
