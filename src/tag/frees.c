/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * liballium-frees.so replaces free() and realloc() of the whole process, so that frees by code without tags are
 * counted at once. The library is preloaded, or linked before all others. It is not part of liballium.so, because it
 * makes each free() slower: if tagged code frees an object, the map of objects is searched twice.
 *
 * Runs in: target. Threads: any, signal handlers included.
 * Invariant: if an object has no tag, the real function gets the same arguments as without this library.
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
static __thread bool in_dlsym __attribute__((tls_model("initial-exec")));

/*
 * Finds the real functions. dlsym() does not allocate if it finds the name. If dlsym() nevertheless calls free() or
 * realloc(), this function returns false in that call: then free() leaks the memory, and realloc() returns NULL.
 */
static bool find_next(void)
{
    if (in_dlsym)
        return false;
    in_dlsym = true;
    void *their_free = dlsym(RTLD_NEXT, "free"), *their_realloc = dlsym(RTLD_NEXT, "realloc");
    __atomic_store_n(&next.realloc, (void *(*)(void *, size_t))(uintptr_t)their_realloc, __ATOMIC_RELEASE);
    __atomic_store_n(&next.free, (void (*)(void *))(uintptr_t)their_free, __ATOMIC_RELEASE);
    in_dlsym = false;
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
