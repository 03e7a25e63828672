/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdint.h>

#include "agent/hooks/hooks.h"
#include "agent/hooks/next.h"
#include "agent/thread_state.h"

/*
 * Each request is counted once, even if the functions of the allocator call each other through their symbols. For an
 * allocator other than glibc's, the agent calls each function once at the start, with the thread marked busy. If one of
 * our hooks is entered during the call, the called function calls another one of the family. From then on, the hook of
 * the outer function does not count, because the hook of the inner one does.
 *
 * Frees need no such care, because the second free() of an address finds no sample.
 */

static bool called_hook(struct thread *t)
{
    bool was = t->busy == THREAD_NESTED;
    t->busy = THREAD_CALLING;
    return was;
}

static void probe_c(struct thread *t, bool aligned_too)
{
    void *p;
    next.free(next.calloc(1, 64));
    if (called_hook(t))
        next_entries.calloc = next.calloc;
    next.free(next.realloc(next.malloc(64), 4096));
    if (called_hook(t))
        next_entries.realloc = next.realloc;
    if (!aligned_too)
        return;
    if (!next.posix_memalign(&p, 64, 64))
        next.free(p);
    if (called_hook(t))
        next_entries.posix_memalign = next.posix_memalign;
    next.free(next.aligned_alloc(64, 64));
    if (called_hook(t))
        next_entries.aligned_alloc = next.aligned_alloc;
    next.free(next.memalign(64, 64));
    if (called_hook(t))
        next_entries.memalign = next.memalign;
    next.free(next.valloc(64));
    if (called_hook(t))
        next_entries.valloc = next.valloc;
    next.free(next.pvalloc(64));
    if (called_hook(t))
        next_entries.pvalloc = next.pvalloc;
}

/* If the program's strndup() is the allocator's and calls no hook of ours, makes our hooks of both functions count. */
static void probe_copies(struct thread *t)
{
    if (!next.strndup || next_entries.strndup != next.strndup)
        return;
    next.free(next.strndup("", 0));
    if (called_hook(t))
        return;
    next_entries.strdup = hooks_strdup;
    next_entries.strndup = hooks_strndup;
}

/* tcmalloc allocates in the first call of malloc_usable_size(). If an allocator enters one of our hooks in the second
 * call, too, the agent does not use malloc_usable_size(). */
static void probe_usable_size(struct thread *t)
{
    if (!next.malloc_usable_size)
        return;
    void *p = next.malloc(64);
    next.malloc_usable_size(p);
    called_hook(t);
    next.malloc_usable_size(p);
    if (called_hook(t))
        next.malloc_usable_size = NULL;
    next.free(p);
}

void hook_layers_probe(bool aligned_too)
{
    struct thread *t = &thread_self;
    uint64_t left = t->left;
    t->left = 0; /* each hook then takes its cold half, which sets THREAD_NESTED */
    t->busy = THREAD_CALLING;
    next.free(next.malloc(64)); /* the first call may set up the allocator */
    probe_usable_size(t);
    probe_c(t, aligned_too);
    probe_copies(t);
    /* The second argument is the alignment of the aligned forms; the other forms ignore it. */
#define X(field, symbol)                                                                                     \
    if (next_operators.field) {                                                                              \
        next.free(next_operators.field(64, 64, 0));                                                          \
        if (called_hook(t))                                                                                  \
            next.field = next_operators.field;                                                               \
    }
    NEXT_NEW_FORMS(X)
#undef X
    t->busy = THREAD_FREE;
    t->left = left;
}
