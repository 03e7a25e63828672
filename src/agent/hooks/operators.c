/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/hooks/operators.h"

#include "agent/hooks/cold.h"
#include "agent/hooks/resolve.h"
#include "agent/sampler/live_filter.h"
#include "agent/sampler/probes.h"
#include "agent/sites_link.h"
#include "unwind/module.h"

/* The exported operators: each jumps to the function in `next`. */
#define X(field, symbol)                                                                                     \
    EXPORT void *symbol(size_t size, size_t second, size_t third);                                           \
    EXPORT void *symbol(size_t size, size_t second, size_t third)                                            \
    {                                                                                                        \
        return next.field(size, second, third);                                                              \
    }
NEXT_NEW_FORMS(X)
#undef X
#define X(field, symbol)                                                                                     \
    EXPORT void symbol(void *p, size_t second, size_t third);                                                \
    EXPORT void symbol(void *p, size_t second, size_t third)                                                 \
    {                                                                                                        \
        next.field(p, second, third);                                                                        \
    }
NEXT_DELETE_FORMS(X)
#undef X

COLD void *operators_new_cold(size_t size, size_t second, size_t third, next_new_fn *real)
{
    struct walk_start start = COLD_CALLER();
    struct thread *t = &thread_self;
    bool due = cold_begin(t, size);
    /* The operator may throw and not return: so the failure is counted before the call, and taken back on success. */
    process_count_loss(LEDGER_FAILED_REQUESTS);
    void *p = (*real)(size, second, third);
    if (p)
        process_uncount_loss(LEDGER_FAILED_REQUESTS);
    sites_allocated(&start, p, size);
    if (p && due)
        probe_malloc(p, size, sample_allocated(t, &start, p, size));
    return p;
}

COLD void operators_delete_cold(void *p, size_t second, size_t third, next_delete_fn *real)
{
    struct walk_start start = COLD_CALLER();
    struct thread *t = &thread_self;
    sites_released(&start, p);
    sample_freed(t, &start, p, NULL);
    (*real)(p, second, third);
}

/* Hooks for an allocator with operators of its own: they do the agent's work, and call the operator. */
#define X(field, symbol)                                                                                     \
    static void *count_##field(size_t size, size_t second, size_t third)                                     \
    {                                                                                                        \
        if (likely(size < thread_self.left)) {                                                               \
            thread_self.left -= size;                                                                        \
            return next_operators.field(size, second, third);                                                \
        }                                                                                                    \
        return operators_new_cold(size, second, third, &next_operators.field);                               \
    }
NEXT_NEW_FORMS(X)
#undef X
#define X(field, symbol)                                                                                     \
    static void count_##field(void *p, size_t second, size_t third)                                          \
    {                                                                                                        \
        if (likely(!live_filter_may_hold(p))) {                                                              \
            next_operators.field(p, second, third);                                                          \
            return;                                                                                          \
        }                                                                                                    \
        operators_delete_cold(p, second, third, &next_operators.field);                                      \
    }
NEXT_DELETE_FORMS(X)
#undef X

/* Called in place of operators that no module defines. (Without the agent, the program could not have called them.) */
static void *new_of_malloc(size_t size, size_t second, size_t third)
{
    (void)second;
    (void)third;
    return next.malloc(size ? size : 1);
}

static void delete_of_free(void *p, size_t second, size_t third)
{
    (void)second;
    (void)third;
    next.free(p);
}

/*
 * Returns the real operator for the program's call at `caller`: one of a module that was loaded with the program; else
 * one of the caller's module; else one of any module behind the agent. NULL: there is none. *for_good is set in the
 * first case: the operator's module is never unloaded, so the result may be stored.
 */
static void *resolve_operator(const char *name, uintptr_t caller, bool *for_good)
{
    void *real = resolve_startup(name);
    *for_good = real != NULL;
    const struct link_map *own = real ? NULL : module_link_map(caller);
    if (own)
        real = resolve_in(own, name);
    return real ? real : resolve_next(name, NULL);
}

/* operators_resolve_*() end in a tail jump to the result of find_*(), so that it has the program's return address. */
#define X(field, symbol)                                                                                     \
    static ONE_COPY next_new_fn find_##field(uintptr_t caller)                                               \
    {                                                                                                        \
        bool for_good = false;                                                                               \
        boot_agent();                                                                                        \
        next_new_fn real = (next_new_fn)resolve_operator(#symbol, caller, &for_good);                        \
        if (for_good && next.field == operators_resolve_##field)                                             \
            next.field = sites ? sites->instead_##field(real) : real;                                        \
        if (next.field != operators_resolve_##field) /* set here or by another thread */                     \
            return next.field;                                                                               \
        return real ? real : new_of_malloc;                                                                  \
    }                                                                                                        \
    void *operators_resolve_##field(size_t size, size_t second, size_t third)                                \
    {                                                                                                        \
        return find_##field((uintptr_t)__builtin_return_address(0))(size, second, third);                    \
    }
NEXT_NEW_FORMS(X)
#undef X
#define X(field, symbol)                                                                                     \
    static ONE_COPY next_delete_fn find_##field(uintptr_t caller)                                            \
    {                                                                                                        \
        bool for_good = false;                                                                               \
        boot_agent();                                                                                        \
        next_delete_fn real = (next_delete_fn)resolve_operator(#symbol, caller, &for_good);                  \
        if (for_good && next.field == operators_resolve_##field)                                             \
            next.field = sites ? sites->instead_##field(real) : real;                                        \
        if (next.field != operators_resolve_##field) /* set here or by another thread */                     \
            return next.field;                                                                               \
        return real ? real : delete_of_free;                                                                 \
    }                                                                                                        \
    void operators_resolve_##field(void *p, size_t second, size_t third)                                     \
    {                                                                                                        \
        find_##field((uintptr_t)__builtin_return_address(0))(p, second, third);                              \
    }
NEXT_DELETE_FORMS(X)
#undef X

void operators_adopt(const struct link_map *allocator)
{
#define X(field, symbol)                                                                                     \
    if ((next_operators.field = (next_new_fn)resolve_in(allocator, #symbol)) != NULL)                        \
        next.field = count_##field;
    NEXT_NEW_FORMS(X)
#undef X
#define X(field, symbol)                                                                                     \
    if ((next_operators.field = (next_delete_fn)resolve_in(allocator, #symbol)) != NULL)                     \
        next.field = count_##field;
    NEXT_DELETE_FORMS(X)
#undef X
}
