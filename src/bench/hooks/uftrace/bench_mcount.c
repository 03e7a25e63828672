/* SPDX-License-Identifier: BSD-2-Clause */
/* -pg: a call of mcount() in each function, which uftrace's library takes the place of. */
#include <dlfcn.h>

#include "bench/hooks/bench_library.h"
#include "bench/hooks/bench_mechanism.h"

#define LIBRARY "allium-bench-mcount.so"

static void (*library_loop)(uint64_t), (*library_bare)(uint64_t);

static void loop(uint64_t calls)
{
    library_loop(calls);
}

static void bare(uint64_t calls)
{
    library_bare(calls);
}

/* Whether it is on is the sink's: uftrace begins before the program does. */
static const char *begin(bool on)
{
    void *library;
    (void)on;
    if (bench_library_open(LIBRARY, &library))
        return LIBRARY " is not beside the helper, or cannot be loaded: reinstall allium";
    library_loop = (void (*)(uint64_t))dlsym(library, "bench_mcount_loop");
    library_bare = (void (*)(uint64_t))dlsym(library, "bench_mcount_bare_loop");
    return library_loop && library_bare ? NULL : LIBRARY " is of another version: reinstall allium";
}
BENCH_MECHANISM(mcount) = {"mcount", bare, loop, begin, 2, NULL};
