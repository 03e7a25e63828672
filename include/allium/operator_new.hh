/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ALLIUM_OPERATOR_NEW_HH
#define ALLIUM_OPERATOR_NEW_HH

/*
 * operator new and delete of a C++ program, with which each call of `new` is a place, and each call of a container. For one
 * source of the program, which includes it before all else:
 *
 *     #include <allium/operator_new.hh>
 *
 * Optimized code has containers inlined, and the line that uses one is the place; else it is the container's.
 */

#include "allium/malloc_hooks.h"

#include <cstddef>
#include <new>

#define ALLIUM_NEW(call)                                                                                     \
    ALLIUM_HELPER_IS("new", "new", static_cast<void (*)()>(nullptr), 0);                                     \
    for (;;) {                                                                                               \
        if (void *allium_new_ = (call))                                                                      \
            return allium_new_;                                                                              \
        std::new_handler allium_handler_ = std::get_new_handler();                                           \
        if (!allium_handler_)                                                                                \
            break;                                                                                           \
        allium_handler_();                                                                                   \
    }

#ifdef __cpp_exceptions
#define ALLIUM_NEW_FAILS   throw std::bad_alloc()
#define ALLIUM_NEW_ATTEMPT try
#define ALLIUM_NEW_CAUGHT                                                                                    \
    catch (const std::bad_alloc &)                                                                           \
    {                                                                                                        \
    }
#else
#define ALLIUM_NEW_FAILS __builtin_trap()
#define ALLIUM_NEW_ATTEMPT
#define ALLIUM_NEW_CAUGHT
#endif

#define ALLIUM_NEW_OPERATORS(name)                                                                           \
    void *operator name(std::size_t bytes)                                                                   \
    {                                                                                                        \
        ALLIUM_NEW(malloc(bytes ? bytes : 1))                                                                \
        ALLIUM_NEW_FAILS;                                                                                    \
    }                                                                                                        \
    void *operator name(std::size_t bytes, const std::nothrow_t &) noexcept                                  \
    {                                                                                                        \
        ALLIUM_NEW_ATTEMPT{ALLIUM_NEW(malloc(bytes ? bytes : 1))} ALLIUM_NEW_CAUGHT return nullptr;          \
    }

ALLIUM_NEW_OPERATORS(new)
ALLIUM_NEW_OPERATORS(new[])

/* All others of the standard library's end in these, but for the aligned ones. */
void operator delete(void *p) noexcept
{
    free(p);
}

void operator delete(void *p, std::size_t) noexcept
{
    free(p);
}

#ifdef __cpp_aligned_new
#define ALLIUM_NEW_ALIGNED(name)                                                                             \
    void *operator name(std::size_t bytes, std::align_val_t alignment)                                       \
    {                                                                                                        \
        ALLIUM_NEW(memalign(static_cast<std::size_t>(alignment), bytes ? bytes : 1))                         \
        ALLIUM_NEW_FAILS;                                                                                    \
    }

ALLIUM_NEW_ALIGNED(new)
ALLIUM_NEW_ALIGNED(new[])

void operator delete(void *p, std::align_val_t) noexcept
{
    free(p);
}

void operator delete(void *p, std::size_t, std::align_val_t) noexcept
{
    free(p);
}
#endif

#endif
