/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/sites_hooks.h"

#include "agent/cold.h"
#include "agent/sites.h"

/* Leaves but for the real call: what is cold is reached by tail jumps. */
static HOT void *sites_malloc(size_t size)
{
    void *p = next.malloc(size);
    if (likely(p) && likely(sites_made_hot(SITES_CALLER, p, size, true)))
        return p;
    return sites_book_cold(p, size);
}

COLD void sites_free_cold(void *p)
{
    struct walk_start from = COLD_CALLER();
    sites_gone_cold(&from, p);
    next.free(p);
}

static HOT void sites_free(void *p)
{
    if (likely(sites_gone_hot(SITES_CALLER, p, true))) {
        next.free(p);
        return;
    }
    sites_free_cold(p);
}

/* Of other allocators, which are asked for usable bytes. */
static void *sites_malloc_asks(size_t size)
{
    return sites_book(SITES_CALLER, next.malloc(size), size);
}

static void sites_free_asks(void *p)
{
    if (likely(sites_gone_hot(SITES_CALLER, p, false))) {
        next.free(p);
        return;
    }
    sites_free_cold(p);
}

static void *sites_calloc(size_t count, size_t each)
{
    return sites_book(SITES_CALLER, next.calloc(count, each),
                      count * each); /* which did not overflow, or we would not be here */
}

static void *sites_realloc(void *old, size_t size)
{
    struct walk_start from = COLD_CALLER();
    struct sites_taken taken = sites_take(old);
    void *p = next.realloc(old, size);
    sites_moved(&from, old, taken, p, size, !p && (size || !old));
    return p;
}

static int sites_posix_memalign(void **out, size_t alignment, size_t size)
{
    struct walk_start from = COLD_CALLER();
    int error = next.posix_memalign(out, alignment, size);
    if (error || *out)
        sites_made_cold(&from, error ? NULL : *out, size);
    return error;
}

static void *sites_aligned_alloc(size_t alignment, size_t size)
{
    return sites_book(SITES_CALLER, next.aligned_alloc(alignment, size), size);
}

static void *sites_memalign(size_t alignment, size_t size)
{
    return sites_book(SITES_CALLER, next.memalign(alignment, size), size);
}

static void *sites_valloc(size_t size)
{
    return sites_book(SITES_CALLER, next.valloc(size), size);
}

static void *sites_pvalloc(size_t size)
{
    return sites_book(SITES_CALLER, next.pvalloc(size), size);
}

/*
 * Where a function of the allocator calls another one of the family through its symbol, that one has counted, for the
 * allocator. What realloc() freed stays freed by the allocator's own call.
 */
#define THROUGH(name, parameters, arguments, size)                                                           \
    static void *through_##name parameters                                                                   \
    {                                                                                                        \
        struct walk_start from = COLD_CALLER();                                                              \
        void *p = next.name arguments;                                                                       \
        sites_recharge_cold(&from, p, size);                                                                 \
        return p;                                                                                            \
    }
THROUGH(calloc, (size_t count, size_t each), (count, each), count *each)
THROUGH(realloc, (void *old, size_t size), (old, size), size)
THROUGH(aligned_alloc, (size_t alignment, size_t size), (alignment, size), size)
THROUGH(memalign, (size_t alignment, size_t size), (alignment, size), size)
THROUGH(valloc, (size_t size), (size), size)
THROUGH(pvalloc, (size_t size), (size), size)
#undef THROUGH

static int through_posix_memalign(void **out, size_t alignment, size_t size)
{
    struct walk_start from = COLD_CALLER();
    int error = next.posix_memalign(out, alignment, size);
    if (!error)
        sites_recharge_cold(&from, *out, size);
    return error;
}

static void stand_before_entries(void)
{
#define X(name)                                                                                              \
    if (next_entries.name == next.name)                                                                      \
        next_entries.name = through_##name;
    X(calloc)
    X(realloc)
    X(posix_memalign)
    X(aligned_alloc)
    X(memalign)
    X(valloc)
    X(pvalloc)
#undef X
}

void sites_hooks_begin(void)
{
    stand_before_entries();
    next_hot = (struct next_hot){.malloc = sites.heads_tell ? sites_malloc : sites_malloc_asks,
                                 .calloc = sites_calloc,
                                 .realloc = sites_realloc,
                                 .free = sites.heads_tell ? sites_free : sites_free_asks,
                                 .posix_memalign = sites_posix_memalign,
                                 .aligned_alloc = sites_aligned_alloc,
                                 .memalign = sites_memalign,
                                 .valloc = sites_valloc,
                                 .pvalloc = sites_pvalloc};
}
