/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_NEXT_H
#define AGENT_NEXT_H

/*
 * The functions that the hooks forward to: the program's own allocator.
 *
 * Runs in: target. Threads: any. boot_agent() sets the pointers; if several threads do so at once, they store the same
 * values. Later, tag_bridge.c and the first call of a C++ operator (operators.c) change some of them.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/sigsafe/compiler.h"

/* The malloc family: X(name). */
#define NEXT_FAMILY(X)                                                                                       \
    X(malloc)                                                                                                \
    X(calloc)                                                                                                \
    X(realloc)                                                                                               \
    X(free)                                                                                                  \
    NEXT_ALIGNED(X)
#define NEXT_ALIGNED(X)                                                                                      \
    X(posix_memalign)                                                                                        \
    X(aligned_alloc)                                                                                         \
    X(memalign)                                                                                              \
    X(valloc)                                                                                                \
    X(pvalloc)

/* The forms of C++ operator new and delete: X(field, symbol). `symbol` is the mangled name. */
#define NEXT_NEW_FORMS(X)                                                                                    \
    X(new_plain, _Znwm)                                                                                      \
    X(new_array, _Znam)                                                                                      \
    X(new_nothrow, _ZnwmRKSt9nothrow_t)                                                                      \
    X(new_array_nothrow, _ZnamRKSt9nothrow_t)                                                                \
    X(new_aligned, _ZnwmSt11align_val_t)                                                                     \
    X(new_array_aligned, _ZnamSt11align_val_t)                                                               \
    X(new_aligned_nothrow, _ZnwmSt11align_val_tRKSt9nothrow_t)                                               \
    X(new_array_aligned_nothrow, _ZnamSt11align_val_tRKSt9nothrow_t)

#define NEXT_DELETE_FORMS(X)                                                                                 \
    X(delete_plain, _ZdlPv)                                                                                  \
    X(delete_array, _ZdaPv)                                                                                  \
    X(delete_nothrow, _ZdlPvRKSt9nothrow_t)                                                                  \
    X(delete_array_nothrow, _ZdaPvRKSt9nothrow_t)                                                            \
    X(delete_sized, _ZdlPvm)                                                                                 \
    X(delete_array_sized, _ZdaPvm)                                                                           \
    X(delete_aligned, _ZdlPvSt11align_val_t)                                                                 \
    X(delete_array_aligned, _ZdaPvSt11align_val_t)                                                           \
    X(delete_aligned_nothrow, _ZdlPvSt11align_val_tRKSt9nothrow_t)                                           \
    X(delete_array_aligned_nothrow, _ZdaPvSt11align_val_tRKSt9nothrow_t)                                     \
    X(delete_sized_aligned, _ZdlPvmSt11align_val_t)                                                          \
    X(delete_array_sized_aligned, _ZdaPvmSt11align_val_t)

/* Each form has at most three parameters, in registers. The hooks pass on all three, even if a form has fewer. */
typedef void *(*next_new_fn)(size_t size, size_t second, size_t third);
typedef void (*next_delete_fn)(void *p, size_t second, size_t third);

struct next {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void (*free)(void *);
    int (*posix_memalign)(void **, size_t, size_t);
    void *(*aligned_alloc)(size_t, size_t);
    void *(*memalign)(size_t, size_t);
    void *(*valloc)(size_t);
    void *(*pvalloc)(size_t);
    size_t (*malloc_usable_size)(void *);
    /* strndup() of the allocator's module (mimalloc 3 has one); NULL: this module has none, and the hook of strndup()
     * calls that of the C library. */
    char *(*strndup)(const char *, size_t);
    bool is_glibc; /* the allocator is glibc's */
    /* The functions that the exported operators jump to: operators_resolve_*(), which look up the real ones at
     * each call; the real operators, once they are known to stay; or functions of operators.c or sites/ that count. */
#define X(field, symbol) next_new_fn field;
    NEXT_NEW_FORMS(X)
#undef X
#define X(field, symbol) next_delete_fn field;
    NEXT_DELETE_FORMS(X)
#undef X
};

extern struct next next __attribute__((visibility("hidden")));

/*
 * The functions that the hot halves of the hooks jump to: the real ones; with accounts of sites, those of
 * sites_hooks.c, which call the real ones. With tags, `free` and `realloc` may be functions of tag_bridge.c.
 */
struct next_hot {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void (*free)(void *);
    int (*posix_memalign)(void **, size_t, size_t);
    void *(*aligned_alloc)(size_t, size_t);
    void *(*memalign)(size_t, size_t);
    void *(*valloc)(size_t);
    void *(*pvalloc)(size_t);
};

extern struct next_hot next_hot __attribute__((visibility("hidden")));

/*
 * The functions that the exported functions of the same name jump to. Usually an entry is the hot half of our hook. If
 * the allocator's function calls another function of the family through its symbol, the hook of the other function
 * counts, so the entry is the allocator's function, or one of sites_hooks.c that calls it. With tags, `realloc` may be
 * a function of tag_bridge.c. `strdup` and `strndup` are the real functions, or hooks_strdup() and hooks_strndup().
 */
struct next_entries {
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    int (*posix_memalign)(void **, size_t, size_t);
    void *(*aligned_alloc)(size_t, size_t);
    void *(*memalign)(size_t, size_t);
    void *(*valloc)(size_t);
    void *(*pvalloc)(size_t);
    char *(*strdup)(const char *);
    char *(*strndup)(const char *, size_t);
};

extern struct next_entries next_entries __attribute__((visibility("hidden")));

/**
 * Calls each function of the allocator to find out which of them call others of the family through their symbols, and
 * stops the hooks of those functions from counting. `aligned_too`: the allocator has aligned functions.
 */
void hook_layers_probe(bool aligned_too);

/** The real C++ operators that our counting ones call: the allocator's, or, with sites, libstdc++'s. NULL: none. */
struct next_operators {
#define X(field, symbol) next_new_fn field;
    NEXT_NEW_FORMS(X)
#undef X
#define X(field, symbol) next_delete_fn field;
    NEXT_DELETE_FORMS(X)
#undef X
};

extern struct next_operators next_operators __attribute__((visibility("hidden")));

/**
 * Initialises the agent if that was not done yet: finds the program's allocator and reads the settings. May be called
 * any number of times, in any context.
 */
ONE_COPY void boot_agent(void);
/**
 * True: the agent was loaded after libc, for example by dlopen(). It then only forwards calls and observes nothing,
 * unless sites/attached.c clears this, and calls boot_agent().
 */
extern bool boot_is_inert __attribute__((visibility("hidden")));

#endif
