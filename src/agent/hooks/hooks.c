/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "agent/hooks/cold.h"
#include "agent/hooks/hooks.h"
#include "agent/hooks/jump_patch.h"
#include "agent/sampler/live_filter.h"
#include "agent/sampler/live_table.h"
#include "agent/sampler/probes.h"
#include "agent/sites_link.h"
#include "agent/tag_bridge.h"

/*
 * The malloc family. The hot half of a function subtracts the requested bytes from the thread's counter, and jumps to
 * the real function. All other work is in the cold half, which is reached by a tail jump. The counter, `left`, is 0 in
 * a new thread and in exact mode: then each request takes the cold half.
 */

/* Subtracts `size` from the thread's counter. False: the counter is too small, and is not changed. */
static inline __attribute__((always_inline)) bool take_bytes(size_t size)
{
    uint64_t left = thread_self.left;
    if (unlikely(!cold_subtract(&left, size)))
        return false;
    thread_self.left = left;
    return true;
}

static COLD void *malloc_cold(size_t size)
{
    struct walk_start start = COLD_CALLER();
    struct thread *t = &thread_self;
    bool due = cold_begin(t, size);
    void *p = next.malloc(size);
    probe_malloc(p, size, cold_end(t, &start, due, p, size));
    return p;
}

EXPORT HOT JUMP_PATCH_TEXT void *malloc(size_t size)
{
    if (likely(take_bytes(size)))
        return next_hot.malloc(size);
    return malloc_cold(size);
}

COLD void hooks_free_cold(void *p)
{
    /* The real free() reads the header before the block first: the CPU fetches it during the lookup of the sample. */
    __builtin_prefetch((const char *)p - 2 * sizeof(size_t), 1);
    struct walk_start start = COLD_CALLER();
    struct thread *t = &thread_self;
    tag_bridge_released(p);
    sites_released(&start, p);
    sample_freed(t, &start, p, NULL);
    next.free(p);
}

EXPORT HOT JUMP_PATCH_TEXT void free(void *p)
{
    if (likely(!live_filter_may_hold(p))) {
        next_hot.free(p);
        return;
    }
    hooks_free_cold(p);
}

static COLD void *calloc_cold(size_t count, size_t each)
{
    struct walk_start start = COLD_CALLER();
    struct thread *t = &thread_self;
    size_t size;
    if (__builtin_mul_overflow(count, each, &size))
        size = SIZE_MAX;
    bool due = cold_begin(t, size);
    void *p = next.calloc(count, each);
    probe_calloc(p, size, cold_end(t, &start, due, p, size));
    return p;
}

JUMP_PATCH_TEXT static void *calloc_hot(size_t count, size_t each)
{
    size_t size;
    if (unlikely(__builtin_mul_overflow(count, each, &size)))
        return calloc_cold(count, each);
    if (likely(take_bytes(size)))
        return next_hot.calloc(count, each);
    return calloc_cold(count, each);
}

static COLD void *realloc_cold(void *old, size_t size)
{
    struct walk_start start = COLD_CALLER();
    struct thread *t = &thread_self;
    bool due = cold_begin(t, size);
    struct taken taken = {.record = LIVE_TABLE_NONE};
    if (old && live_filter_may_hold(old))
        taken = sample_take(t, old);
    if (taken.record != LIVE_TABLE_NONE)
        probe_otel_free((uintptr_t)old);
    struct tag_bridge_taken tagged = tag_bridge_take(old);
    struct sites_taken counted = sites_on ? sites->take(&start, old) : (struct sites_taken){.generation = 0};
    void *p = next.realloc(old, size);
    /* realloc(p, 0) returns NULL or a new block, depending on the allocator. Either way it has freed the old block. */
    bool failed = !p && (size || !old);
    if (sites_on)
        sites->moved(&start, old, counted, p, size, failed);
    tag_bridge_moved(&tagged, old, p, size);
    if (failed) {
        probe_realloc_failed(old, sample_put_back(t, taken));
        process_count_loss(LEDGER_FAILED_REQUESTS);
        return p;
    }
    sample_freed(t, &start, old, &taken);
    struct sample_allocated allocated = {0};
    if (p && due)
        allocated = sample_allocated(t, &start, p, size);
    probe_realloc(p, size, allocated, old, &taken.released);
    return p;
}

JUMP_PATCH_TEXT static void *realloc_hot(void *old, size_t size)
{
    if (likely(!live_filter_may_hold(old) && take_bytes(size)))
        return next_hot.realloc(old, size);
    return realloc_cold(old, size);
}

static COLD int posix_memalign_cold(void **out, size_t alignment, size_t size)
{
    struct walk_start start = COLD_CALLER();
    struct thread *t = &thread_self;
    bool due = cold_begin(t, size);
    int error = next.posix_memalign(out, alignment, size);
    if (error) {
        process_count_loss(LEDGER_FAILED_REQUESTS);
        sites_allocated(&start, NULL, size);
    } else if (*out)
        probe_malloc(*out, size, cold_end(t, &start, due, *out, size));
    return error;
}

JUMP_PATCH_TEXT static int posix_memalign_hot(void **out, size_t alignment, size_t size)
{
    if (likely(take_bytes(size)))
        return next_hot.posix_memalign(out, alignment, size);
    return posix_memalign_cold(out, alignment, size);
}

static COLD void *aligned_cold(size_t alignment, size_t size, void *(**real)(size_t, size_t))
{
    struct walk_start start = COLD_CALLER();
    struct thread *t = &thread_self;
    bool due = cold_begin(t, size);
    void *p = (*real)(alignment, size);
    probe_malloc(p, size, cold_end(t, &start, due, p, size));
    return p;
}

JUMP_PATCH_TEXT static void *aligned_alloc_hot(size_t alignment, size_t size)
{
    if (likely(take_bytes(size)))
        return next_hot.aligned_alloc(alignment, size);
    return aligned_cold(alignment, size, &next.aligned_alloc);
}

JUMP_PATCH_TEXT static void *memalign_hot(size_t alignment, size_t size)
{
    if (likely(take_bytes(size)))
        return next_hot.memalign(alignment, size);
    return aligned_cold(alignment, size, &next.memalign);
}

static COLD void *paged_cold(size_t size, void *(**real)(size_t))
{
    struct walk_start start = COLD_CALLER();
    struct thread *t = &thread_self;
    bool due = cold_begin(t, size);
    void *p = (*real)(size);
    probe_malloc(p, size, cold_end(t, &start, due, p, size));
    return p;
}

JUMP_PATCH_TEXT static void *valloc_hot(size_t size)
{
    if (likely(take_bytes(size)))
        return next_hot.valloc(size);
    return paged_cold(size, &next.valloc);
}

JUMP_PATCH_TEXT static void *pvalloc_hot(size_t size)
{
    if (likely(take_bytes(size)))
        return next_hot.pvalloc(size);
    return paged_cold(size, &next.pvalloc);
}

struct next_entries next_entries = {
    .calloc = calloc_hot,
    .realloc = realloc_hot,
    .posix_memalign = posix_memalign_hot,
    .aligned_alloc = aligned_alloc_hot,
    .memalign = memalign_hot,
    .valloc = valloc_hot,
    .pvalloc = pvalloc_hot,
};

bool hooks_count_realloc(void)
{
    return next_entries.realloc == realloc_hot;
}

EXPORT JUMP_PATCH_TEXT void *calloc(size_t count, size_t each)
{
    return next_entries.calloc(count, each);
}

EXPORT JUMP_PATCH_TEXT void *realloc(void *old, size_t size)
{
    return next_entries.realloc(old, size);
}

/* Calls our realloc(): the real reallocarray() would call it, too, through its PLT (glibc), or does not exist. */
EXPORT void *reallocarray(void *old, size_t count, size_t each)
{
    size_t size;
    if (unlikely(__builtin_mul_overflow(count, each, &size))) {
        process_count_loss(LEDGER_FAILED_REQUESTS);
        errno = ENOMEM;
        return NULL;
    }
    return next_entries.realloc(old, size);
}

EXPORT int posix_memalign(void **out, size_t alignment, size_t size)
{
    return next_entries.posix_memalign(out, alignment, size);
}

EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
    return next_entries.aligned_alloc(alignment, size);
}

EXPORT void *memalign(size_t alignment, size_t size)
{
    return next_entries.memalign(alignment, size);
}

EXPORT void *valloc(size_t size)
{
    return next_entries.valloc(size);
}

EXPORT void *pvalloc(size_t size)
{
    return next_entries.pvalloc(size);
}

COLD char *hooks_strndup(const char *s, size_t most)
{
    struct walk_start start = COLD_CALLER();
    struct thread *t = &thread_self;
    size_t size = 1;
    while (size <= most && s[size - 1])
        size++;
    bool due = cold_begin(t, size);
    char *p = next.strndup(s, size - 1);
    probe_malloc(p, size, cold_end(t, &start, due, p, size));
    return p;
}

char *hooks_strdup(const char *s)
{
    return hooks_strndup(s, SIZE_MAX - 1);
}

EXPORT char *strdup(const char *s)
{
    if (unlikely(!next_entries.strdup))
        boot_agent();
    return next_entries.strdup(s);
}

EXPORT char *strndup(const char *s, size_t most)
{
    if (unlikely(!next_entries.strndup))
        boot_agent();
    return next_entries.strndup(s, most);
}
