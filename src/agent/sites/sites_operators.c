/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/sites/sites_operators.h"

#include "agent/hooks/cold.h"
#include "agent/hooks/hooks.h"
#include "agent/hooks/resolve.h"
#include "agent/sampler/live_filter.h"
#include "agent/sampler/probes.h"
#include "agent/sites/sites_hooks.h"
#include "agent/tracer/tracer.h"
#include "agent/tracer/tracer_general.h"
#include "agent/tracer/tracer_options.h"
#include "base/sigsafe/str.h"
#include "unwind/module.h"

/* ---- operators of the allocator ---- */

#define X(field, symbol)                                                                                     \
    static void *sites_##field(size_t size, size_t second, size_t third)                                     \
    {                                                                                                        \
        if (likely(size < thread_self.left)) {                                                               \
            thread_self.left -= size;                                                                        \
            return sites_book(SITES_CALLER, next_operators.field(size, second, third), size);                \
        }                                                                                                    \
        return operators_new_cold(size, second, third, &next_operators.field);                               \
    }                                                                                                        \
    static void *trace_##field(size_t size, size_t second, size_t third)                                     \
    {                                                                                                        \
        if (likely(size < thread_self.left)) {                                                               \
            thread_self.left -= size;                                                                        \
            return tracer_book(SITES_CALLER, next_operators.field(size, second, third), size);               \
        }                                                                                                    \
        return operators_new_cold(size, second, third, &tracer_general_operators.field);                     \
    }
NEXT_NEW_FORMS(X)
#undef X
#define X(field, symbol)                                                                                     \
    static void sites_##field(void *p, size_t second, size_t third)                                          \
    {                                                                                                        \
        if (likely(!live_filter_may_hold(p) &&                                                               \
                   sites_released_hot(sites_slot_first(SITES_CALLER), SITES_CALLER, p, false))) {            \
            next_operators.field(p, second, third);                                                          \
            return;                                                                                          \
        }                                                                                                    \
        operators_delete_cold(p, second, third, &next_operators.field);                                      \
    }                                                                                                        \
    static void trace_##field(void *p, size_t second, size_t third)                                          \
    {                                                                                                        \
        if (likely(!live_filter_may_hold(p))) {                                                              \
            tracer_release(SITES_CALLER, p);                                                                 \
            next_operators.field(p, second, third);                                                          \
            return;                                                                                          \
        }                                                                                                    \
        operators_delete_cold(p, second, third, &next_operators.field);                                      \
    }
NEXT_DELETE_FORMS(X)
#undef X

/* For operators that call another function of the malloc family through its symbol, whose hook has counted already. */
#define X(field, symbol)                                                                                     \
    static void *through_##field(size_t size, size_t second, size_t third)                                   \
    {                                                                                                        \
        struct walk_start from = COLD_CALLER();                                                              \
        void *p = next_operators.field(size, second, third);                                                 \
        sites_recharge_cold(&from, p, size);                                                                 \
        return p;                                                                                            \
    }
NEXT_NEW_FORMS(X)
#undef X

void sites_operators_begin(void)
{
#define X(field, symbol)                                                                                     \
    if (next_operators.field && next.field != next_operators.field)                                          \
        next.field = sites_##field;
    NEXT_NEW_FORMS(X)
    NEXT_DELETE_FORMS(X)
#undef X
#define X(field, symbol)                                                                                     \
    if (next_operators.field && next.field == next_operators.field)                                          \
        next.field = through_##field;
    NEXT_NEW_FORMS(X)
#undef X
}

/* With the tracer's second set of hooks, all operators take their cold halves. */
#define X(field, symbol)                                                                                     \
    static void *general_##field(size_t size, size_t second, size_t third)                                   \
    {                                                                                                        \
        return operators_new_cold(size, second, third, &tracer_general_operators.field);                     \
    }
NEXT_NEW_FORMS(X)
#undef X
#define X(field, symbol)                                                                                     \
    static void general_##field(void *p, size_t second, size_t third)                                        \
    {                                                                                                        \
        operators_delete_cold(p, second, third, &tracer_general_operators.field);                            \
    }
NEXT_DELETE_FORMS(X)
#undef X

/* An operator that calls malloc() through its symbol is traced there, with the operator as the site. */
void sites_operators_trace(void)
{
#define X(field, symbol)                                                                                     \
    if (next_operators.field && next.field != next_operators.field)                                          \
        next.field = tracer_options_are_general() ? general_##field : trace_##field;
    NEXT_NEW_FORMS(X)
    NEXT_DELETE_FORMS(X)
#undef X
}

/* ---- operators of the C++ library ---- */

static COLD void *direct_cold(size_t size, size_t second, size_t third, next_new_fn *real)
{
    struct walk_start start = COLD_CALLER();
    struct thread *t = &thread_self;
    bool due = cold_begin(t, size);
    void *p = next.malloc(size ? size : 1);
    if (!p)
        return (*real)(size, second, third);
    probe_malloc(p, size, cold_end(t, &start, due, p, size));
    return p;
}

/* The functions below do what the operators of libstdc++ do. If there is no memory, they call the operator itself, for
 * the new handler, and for the exception or NULL if that does not help. */
#define DIRECT(field, next, book)                                                                            \
    {                                                                                                        \
        if (likely(size < thread_self.left)) {                                                               \
            thread_self.left -= size;                                                                        \
            void *p = next.malloc(size ? size : 1);                                                          \
            if (unlikely(!p))                                                                                \
                return next_operators.field(size, second, third);                                            \
            return book(SITES_CALLER, p, size);                                                              \
        }                                                                                                    \
        return direct_cold(size, second, third, &next_operators.field);                                      \
    }
#define X(field, symbol)                                                                                     \
    static void *direct_##field(size_t size, size_t second, size_t third) DIRECT(                            \
        field, next, sites_book) static void *trace_direct_##field(size_t size, size_t second, size_t third) \
        DIRECT(field, tracer_real, tracer_book)
X(new_plain, )
X(new_array, )
X(new_nothrow, )
X(new_array_nothrow, )
#undef X

static COLD void *direct_aligned_cold(size_t size, size_t alignment, size_t third, next_new_fn *real)
{
    struct walk_start start = COLD_CALLER();
    struct thread *t = &thread_self;
    bool due = cold_begin(t, size);
    void *p = next.aligned_alloc(alignment, ((size ? size : 1) + alignment - 1) & ~(alignment - 1));
    if (!p)
        return (*real)(size, alignment, third);
    probe_malloc(p, size, cold_end(t, &start, due, p, size));
    return p;
}

#define X(field)                                                                                             \
    static void *direct_##field(size_t size, size_t alignment, size_t third)                                 \
    {                                                                                                        \
        bool odd = !alignment || (alignment & (alignment - 1)) || size > PTRDIFF_MAX;                        \
        return odd ? next_operators.field(size, alignment, third)                                            \
                   : direct_aligned_cold(size, alignment, third, &next_operators.field);                     \
    }
X(new_aligned)
X(new_array_aligned)
X(new_aligned_nothrow)
X(new_array_aligned_nothrow)
#undef X

static void direct_delete(void *p, size_t second, size_t third)
{
    (void)second;
    (void)third;
    if (unlikely(live_filter_may_hold(p))) {
        hooks_free_cold(p);
        return;
    }
    if (likely(sites_released_hot(sites_slot_first(SITES_CALLER), SITES_CALLER, p, false)))
        next.free(p);
    else
        sites_free_cold(p);
}

static void trace_direct_delete(void *p, size_t second, size_t third)
{
    (void)second;
    (void)third;
    if (unlikely(live_filter_may_hold(p))) {
        hooks_free_cold(p);
        return;
    }
    tracer_release(SITES_CALLER, p);
    tracer_real.free(p);
}

static bool is_cxx_library(const struct link_map *m)
{
    return m && m->l_name && text_find(m->l_name, "/libstdc++.so");
}

/* True if no module loaded with the program replaces one of these four operators of libstdc++. All other operators of
 * libstdc++ call these four through their symbols, so a replacement of one would change others, too. */
static bool is_library_whole(void)
{
    static const char *const basic[] = {"_Znwm", "_ZdlPv", "_ZnwmSt11align_val_t", "_ZdlPvSt11align_val_t"};
    for (unsigned i = 0; i < sizeof(basic) / sizeof(*basic); i++)
        if (resolve_before(basic[i]) ||
            !is_cxx_library(module_link_map((uintptr_t)resolve_startup(basic[i]))))
            return false;
    return true;
}

static bool goes_direct(const void *real)
{
    return sites_on && is_cxx_library(module_link_map((uintptr_t)real)) && is_library_whole();
}

#define X(field, unused)                                                                                     \
    static void *general_direct_##field(size_t size, size_t second, size_t third)                            \
    {                                                                                                        \
        return direct_cold(size, second, third, &next_operators.field);                                      \
    }
X(new_plain, )
X(new_array, )
X(new_nothrow, )
X(new_array_nothrow, )
#undef X

static void general_direct_delete(void *p, size_t second, size_t third)
{
    (void)second;
    (void)third;
    hooks_free_cold(p);
}

/* The aligned forms always take the cold path, which counts and traces. */
#define general_direct_new_aligned               direct_new_aligned
#define general_direct_new_array_aligned         direct_new_array_aligned
#define general_direct_new_aligned_nothrow       direct_new_aligned_nothrow
#define general_direct_new_array_aligned_nothrow direct_new_array_aligned_nothrow
#define trace_direct_new_aligned                 direct_new_aligned
#define trace_direct_new_array_aligned           direct_new_array_aligned
#define trace_direct_new_aligned_nothrow         direct_new_aligned_nothrow
#define trace_direct_new_array_aligned_nothrow   direct_new_array_aligned_nothrow
#define X(field, symbol)                                                                                     \
    next_new_fn sites_instead_##field(next_new_fn real)                                                      \
    {                                                                                                        \
        if (!goes_direct((const void *)real))                                                                \
            return real;                                                                                     \
        next_operators.field = real;                                                                         \
        return !tracer_on                     ? direct_##field                                               \
               : tracer_options_are_general() ? general_direct_##field                                       \
                                              : trace_direct_##field;                                        \
    }
NEXT_NEW_FORMS(X)
#undef X
#define X(field, symbol)                                                                                     \
    next_delete_fn sites_instead_##field(next_delete_fn real)                                                \
    {                                                                                                        \
        return !goes_direct((const void *)real) ? real                                                       \
               : !tracer_on                     ? direct_delete                                              \
               : tracer_options_are_general()   ? general_direct_delete                                      \
                                                : trace_direct_delete;                                         \
    }
NEXT_DELETE_FORMS(X)
#undef X
