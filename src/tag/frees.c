/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * liballium-frees.so: free() and realloc() of the whole process, so that what code without tags gives back is seen at
 * once. For LD_PRELOAD, or for whom it is worth some instructions at each free to link it before all other libraries.
 * It is a library of its own since tagged code, which has looked already, pays as well.
 *
 * Runs in: target. Threads: any, signal handlers included.
 * Invariant: what belongs to no tag goes to the function that would have been called without us, as it came.
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
 * dlsym() asks for no memory where it finds the name. Should it give some back all the same, that is left alone; should
 * it ask for some, it gets none.
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
