/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/sites/sites_hooks.h"

#include "agent/hooks/cold.h"
#include "agent/sites/sites.h"

/* The HOT functions below call only the real function; they reach the cold functions by tail jumps. */
static HOT void *sites_malloc(size_t size)
{
    void *p = next.malloc(size);
    if (likely(p) && likely(sites_allocated_hot(sites_slot_first(SITES_CALLER), SITES_CALLER, p, size, true)))
        return p;
    return sites_book_cold(p, size);
}

COLD void sites_free_cold(void *p)
{
    struct walk_start from = COLD_CALLER();
    const struct sites_slot *slot = sites_pass_wrappers(&from);
    uintptr_t pc = load_relaxed(&slot->pc);
    if (unlikely(!pc) || !sites_released_hot(slot, pc, p, sites_heads_have_size))
        sites_released_cold(&from, p);
    next.free(p);
}

static HOT void sites_free(void *p)
{
    if (likely(sites_released_hot(sites_slot_first(SITES_CALLER), SITES_CALLER, p, true))) {
        next.free(p);
        return;
    }
    sites_free_cold(p);
}

/* Hooks if sites_heads_have_size is 0: malloc_usable_size() returns the usable bytes, if the allocator has it. */
static void *sites_malloc_other(size_t size)
{
    return sites_book(SITES_CALLER, next.malloc(size), size);
}

static void sites_free_other(void *p)
{
    if (likely(sites_released_hot(sites_slot_first(SITES_CALLER), SITES_CALLER, p, false))) {
        next.free(p);
        return;
    }
    sites_free_cold(p);
}

/* count * each does not overflow, because calloc_hot() has checked it. */
static HOT void *sites_calloc(size_t count, size_t each)
{
    void *p = next.calloc(count, each);
    if (likely(p) &&
        likely(sites_allocated_hot(sites_slot_first(SITES_CALLER), SITES_CALLER, p, count * each, true)))
        return p;
    return sites_book_cold(p, count * each);
}

static void *sites_calloc_other(size_t count, size_t each)
{
    return sites_book(SITES_CALLER, next.calloc(count, each), count * each);
}

static COLD void *sites_realloc_cold(void *old, size_t size)
{
    struct walk_start from = COLD_CALLER();
    struct sites_taken taken = sites_take(old);
    void *p = next.realloc(old, size);
    sites_moved(&from, old, taken, p, size, !p && (size || !old));
    return p;
}

/* Completes a realloc() that sites_realloc() has begun. `had` has the entry that the map had for `old` in its low 32
 * bits, and above them the generation of the process that removed the entry. */
static COLD void *sites_moved_cold(void *old, size_t size, void *p, uint64_t had, uint64_t usable)
{
    struct walk_start from = COLD_CALLER();
    struct sites_taken taken = {
        .object = {(uint32_t)had >> OBJECTS_BYTES_BITS, had & OBJECTS_BYTES_INLINE},
        .usable_bytes = usable,
        .generation = (uint32_t)(had >> 32),
    };
    sites_moved(&from, old, taken, p, size, !p && size);
    /* Hides that the result is `p`: clang would let sites_realloc() call here, not jump, and return its own `p`. */
    __asm__("" : "+r"(p));
    return p;
}

/* If a signal handler forks during the real realloc(), this function also goes on in the child. The map of the child
 * did not have `old`: so the function compares the generation before and after the real realloc(). */
static HOT void *sites_realloc(void *old, size_t size)
{
    uint32_t generation = thread_self.generation;
    const struct sites_slot *slot = sites_slot_known(SITES_CALLER);
    struct sites_held held;
    if (unlikely(!sites_take_hot(slot, SITES_CALLER, old, true, &held)))
        return sites_realloc_cold(old, size);
    void *p = next.realloc(old, size);
    if (unlikely(!p || thread_self.generation != generation ||
                 !sites_allocated_hot(slot, SITES_CALLER, p, size, true)))
        return sites_moved_cold(old, size, p, (uint64_t)generation << 32 | held.had, held.usable);
    sites_freed_hot(&held);
    return p;
}

static int sites_posix_memalign(void **out, size_t alignment, size_t size)
{
    struct walk_start from = COLD_CALLER();
    int error = next.posix_memalign(out, alignment, size);
    if (error || *out)
        sites_allocated_cold(&from, error ? NULL : *out, size);
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
 * For functions of the allocator that call another function of the malloc family through its symbol: the hook of that
 * other function has counted the object for the call in the allocator. The functions below move the object to the
 * program's call. The free of the old object by realloc() stays counted for the call in the allocator.
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

static void install_through(void)
{
#define X(name)                                                                                              \
    if (next_entries.name == next.name)                                                                      \
        next_entries.name = through_##name;
    X(calloc)
    X(realloc)
    NEXT_ALIGNED(X)
#undef X
}

void sites_hooks_begin(void)
{
    install_through();
    next_hot = (struct next_hot){.malloc = sites_heads_have_size ? sites_malloc : sites_malloc_other,
                                 .calloc = sites_heads_have_size ? sites_calloc : sites_calloc_other,
                                 .realloc = sites_heads_have_size ? sites_realloc : sites_realloc_cold,
                                 .free = sites_heads_have_size ? sites_free : sites_free_other,
                                 .posix_memalign = sites_posix_memalign,
                                 .aligned_alloc = sites_aligned_alloc,
                                 .memalign = sites_memalign,
                                 .valloc = sites_valloc,
                                 .pvalloc = sites_pvalloc};
}
