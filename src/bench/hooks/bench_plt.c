/* SPDX-License-Identifier: BSD-2-Clause */
/* A wrapper: a function of the name of another one in a library, as LD_PRELOAD is used for. */
#include <dlfcn.h>

#include "bench/hooks/bench_library.h"
#include "bench/hooks/bench_mechanism.h"

#define LIBRARY "allium-bench-plt.so"

uint64_t bench_plt_work(uint64_t x);

static uint32_t is_on;
static uint64_t (*next)(uint64_t);
static void (*library_loop)(uint64_t), (*library_bare)(uint64_t);

/* The library finds this one before its own. */
BENCH_CODE uint64_t bench_plt_work(uint64_t x)
{
    if (unlikely(load_relaxed(&is_on)))
        bench_hook((void *)next, BENCH_CALLER);
    return next(x);
}

static void loop(uint64_t calls)
{
    library_loop(calls);
}

static void bare(uint64_t calls)
{
    library_bare(calls);
}

static const char *begin(bool on)
{
    void *library;
    if (bench_library_open(LIBRARY, &library))
        return LIBRARY " is not beside the helper, or cannot be loaded: reinstall allium";
    next = (uint64_t(*)(uint64_t))dlsym(library, "bench_plt_work");
    library_loop = (void (*)(uint64_t))dlsym(library, "bench_plt_loop");
    library_bare = (void (*)(uint64_t))dlsym(library, "bench_plt_bare_loop");
    if (!next || !library_loop || !library_bare)
        return LIBRARY " is of another version: reinstall allium";
    store_relaxed(&is_on, on);
    return NULL;
}
BENCH_MECHANISM(plt) = {"plt", bare, loop, begin, 1, NULL};
