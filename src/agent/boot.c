/* SPDX-License-Identifier: BSD-2-Clause */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include "agent/clock.h"
#include "agent/exec/exec.h"
#include "agent/hooks/jump_patch.h"
#include "agent/hooks/next.h"
#include "agent/hooks/operators.h"
#include "agent/hooks/resolve.h"
#include "agent/process.h"
#include "agent/sampler/live_filter.h"
#include "agent/sites_link.h"
#include "target/seccomp_guard.h"
#include "unwind/module.h"

/*
 * Initialises the agent in the constructor, or earlier if a hook that needs the agent is called before: ld.so may call
 * malloc() before any constructor has run. Until the agent is initialised, `thread_self.left` is 0, so each request
 * takes its cold half, which calls boot_agent(); free() jumps to early_free(), which calls boot_agent(), too.
 */

static void early_free(void *p)
{
    boot_agent();
    if (next.free != early_free)
        next.free(p);
}

struct next_hot next_hot = {.free = early_free};
struct next next = {.free = early_free,
#define X(field, symbol) .field = operators_resolve_##field,
                    NEXT_NEW_FORMS(X) NEXT_DELETE_FORMS(X)
#undef X
};
struct next_operators next_operators;

bool boot_is_inert;

/*
 * find_allocator() takes malloc(), calloc(), realloc() and free() from the modules where the program finds them: the
 * loader looks each of them up by itself, so a library may replace malloc() alone. The aligned functions come from the
 * module that defines malloc(). If this module lacks memalign(), valloc() or pvalloc() (jemalloc has no pvalloc()), a
 * function below replaces it. Only posix_memalign(), or memalign() if the module has neither of the two, may come from
 * another module behind the agent.
 */
static void *memalign_of_posix(size_t alignment, size_t size)
{
    void *p = NULL;
    return next.posix_memalign(&p, alignment, size) ? NULL : p;
}

static void *valloc_of_memalign(size_t size)
{
    return next.memalign((size_t)getpagesize(), size);
}

static void *pvalloc_of_memalign(size_t size)
{
    size_t page = (size_t)getpagesize(), whole;
    if (__builtin_add_overflow(size, page - 1, &whole))
        whole = SIZE_MAX;
    return next.memalign(page, whole & ~(page - 1));
}

/* struct next begins with the functions that struct next_hot has. */
_Static_assert(offsetof(struct next, pvalloc) == offsetof(struct next_hot, pvalloc),
               "one order of functions");

static void find_allocator(void)
{
    const struct link_map *m, *with_calloc, *with_realloc, *with_free;
    struct next n = next;
    n.malloc = resolve_next("malloc", &m);
    if (!n.malloc)
        return;
    n.calloc = resolve_next("calloc", &with_calloc);
    n.realloc = resolve_next("realloc", &with_realloc);
    n.free = resolve_next("free", &with_free);
#define X(name) n.name = resolve_in(m, #name);
    NEXT_ALIGNED(X)
#undef X
    n.malloc_usable_size = resolve_in(m, "malloc_usable_size");
    n.strndup = resolve_in(m, "strndup");
    next_entries.strdup = resolve_next("strdup", NULL);
    next_entries.strndup = resolve_next("strndup", NULL);
    const bool aligns = n.posix_memalign || n.memalign;
    if (!n.memalign)
        n.memalign = aligns ? memalign_of_posix : (void *(*)(size_t, size_t))resolve_next("memalign", NULL);
    if (!n.posix_memalign)
        n.posix_memalign = resolve_next("posix_memalign", NULL);
    if (!n.aligned_alloc)
        n.aligned_alloc = n.memalign;
    if (!n.valloc)
        n.valloc = valloc_of_memalign;
    if (!n.pvalloc)
        n.pvalloc = pvalloc_of_memalign;
    seccomp_next.prctl = resolve_next("prctl", NULL);
    seccomp_next.syscall = resolve_next("syscall", NULL);
    exec_init();
    system_popen_init();
    if (sites)
        sites->find_next();
    n.is_glibc = resolve_in(m, "__libc_start_main") != NULL;
    next = n;
    __builtin_memcpy(&next_hot, &n, sizeof(next_hot));
    operators_adopt(m);
    /*
     * The functions of glibc do not call each other through their symbols. There is no probe if a module has free() but
     * lacks calloc() or realloc(): its free() may not know blocks of theirs, and the program may never pass one to it.
     */
    if (!n.is_glibc && !boot_is_inert && ((with_calloc == m && with_realloc == m) || with_free != m))
        hook_layers_probe(aligns);
}

void boot_agent(void)
{
    static bool has_begun;
    if (!next.malloc) {
        boot_is_inert = resolve_is_late();
        find_allocator();
    }
    if (boot_is_inert)
        return;
    if (!process.generation) {
        atomic_find_alone_flag();
        module_init();
        live_filter_begin();
        process_update();
    }
    if (process.config.sites && !has_begun && !thread_self.busy) { /* not during hook_layers_probe() */
        has_begun = true;
        sites->begin();
    }
}

__attribute__((constructor)) static void construct(void)
{
    boot_agent();
    if (boot_is_inert)
        return;
    module_init_late();
    jump_patch_apply();
    pthread_atfork(process_before_fork, NULL, process_after_fork);
}

__attribute__((destructor)) static void destruct(void)
{
    process_end();
}
