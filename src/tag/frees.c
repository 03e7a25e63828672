/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * liballium-frees.so replaces free() and realloc() of the whole process, so that frees by code without tags are
 * counted at once. It is preloaded, or linked before all other libraries by programs that accept some more
 * instructions for each free(). It is a library of its own, because tagged code, which has searched the map already,
 * pays for it, too.
 *
 * Runs in: target. Threads: any, signal handlers included.
 * Invariant: an object without a tag goes to the real function unchanged.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allium/tag.h"
#include "base/sigsafe/atomic.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT void free(void *p);
EXPORT void *realloc(void *old, size_t bytes);

static struct {
    void (*free)(void *);
    void *(*realloc)(void *, size_t);
} next;
static __thread bool looking __attribute__((tls_model("initial-exec")));

/*
 * dlsym() does not allocate if it finds the name. If it frees memory here all the same, that memory is leaked; if it
 * reallocates, it gets NULL.
 */
static bool find_next(void)
{
    if (looking)
        return false;
    looking = true;
    void *their_free = dlsym(RTLD_NEXT, "free"), *their_realloc = dlsym(RTLD_NEXT, "realloc");
    __atomic_store_n(&next.realloc, (void *(*)(void *, size_t))(uintptr_t)their_realloc, __ATOMIC_RELEASE);
    __atomic_store_n(&next.free, (void (*)(void *))(uintptr_t)their_free, __ATOMIC_RELEASE);
    looking = false;
    return their_free && their_realloc;
}

EXPORT void free(void *p)
{
    void (*real)(void *) = load_acquire(&next.free);
    if (ALLIUM_UNLIKELY(!real)) {
        if (!find_next())
            return;
        real = next.free;
    }
    if (p)
        allium_untrack(p);
    real(p);
}

EXPORT void *realloc(void *old, size_t bytes)
{
    if (ALLIUM_UNLIKELY(!load_acquire(&next.free)) && !find_next())
        return NULL;
    return allium_realloc_by(next.realloc, old, bytes);
}
