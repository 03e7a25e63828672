/* SPDX-License-Identifier: BSD-2-Clause */
#if defined(ALLIUM_DISABLE)
#include "allium/disabled.h"
#elif !defined(ALLIUM_OPERATOR_NEW_HH)
#define ALLIUM_OPERATOR_NEW_HH

/*
 * operator new and delete for a C++ program. They make a place of each line that uses `new`, or a container
 * that allocates. One source of the program includes this header before everything else:
 *
 *     #include <allium/operator_new.hh>
 *
 * In optimized code, containers are inlined, and the place is the line that uses the container. In other code,
 * the place is a line in the source of the container.
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

/*
 * clang's thread sanitizer links operators of its own into each program; a second definition would be an error
 * of the linker. In such a program the operators here are weak: the sanitizer's operators are used, and the
 * objects that these allocate have no tag.
 */
#define ALLIUM_NEW_REPLACES
#ifdef __has_feature
#if __has_feature(thread_sanitizer)
#undef ALLIUM_NEW_REPLACES
#define ALLIUM_NEW_REPLACES __attribute__((weak))
#endif
#endif

#define ALLIUM_NEW_OPERATORS(name)                                                                           \
    ALLIUM_NEW_REPLACES void *operator name(std::size_t bytes)                                               \
    {                                                                                                        \
        ALLIUM_NEW(malloc(bytes ? bytes : 1))                                                                \
        ALLIUM_NEW_FAILS;                                                                                    \
    }                                                                                                        \
    ALLIUM_NEW_REPLACES void *operator name(std::size_t bytes, const std::nothrow_t &) noexcept              \
    {                                                                                                        \
        ALLIUM_NEW_ATTEMPT{ALLIUM_NEW(malloc(bytes ? bytes : 1))} ALLIUM_NEW_CAUGHT return nullptr;          \
    }

ALLIUM_NEW_OPERATORS(new)
ALLIUM_NEW_OPERATORS(new[])

/*
 * All forms of delete are defined, although the standard library's other forms would call the plain form. If a
 * form were missing here, an allocator or a sanitizer in the program might define it. That form would free the
 * objects of the operators above without accounting for them, or report a mismatch.
 */
#define ALLIUM_DELETE_OPERATORS(name)                                                                        \
    ALLIUM_NEW_REPLACES void operator name(void *p) noexcept                                                 \
    {                                                                                                        \
        free(p);                                                                                             \
    }                                                                                                        \
    ALLIUM_NEW_REPLACES void operator name(void *p, std::size_t) noexcept                                    \
    {                                                                                                        \
        free(p);                                                                                             \
    }                                                                                                        \
    ALLIUM_NEW_REPLACES void operator name(void *p, const std::nothrow_t &) noexcept                         \
    {                                                                                                        \
        free(p);                                                                                             \
    }

ALLIUM_DELETE_OPERATORS(delete)
ALLIUM_DELETE_OPERATORS(delete[])

#ifdef __cpp_aligned_new
#define ALLIUM_NEW_ALIGNED(name)                                                                             \
    ALLIUM_NEW_REPLACES void *operator name(std::size_t bytes, std::align_val_t alignment)                   \
    {                                                                                                        \
        ALLIUM_NEW(memalign(static_cast<std::size_t>(alignment), bytes ? bytes : 1))                         \
        ALLIUM_NEW_FAILS;                                                                                    \
    }                                                                                                        \
    ALLIUM_NEW_REPLACES void *operator name(std::size_t bytes, std::align_val_t alignment,                   \
                                            const std::nothrow_t &) noexcept                                 \
    {                                                                                                        \
        ALLIUM_NEW_ATTEMPT{ALLIUM_NEW(memalign(static_cast<std::size_t>(alignment),                          \
                                               bytes ? bytes : 1))} ALLIUM_NEW_CAUGHT return nullptr;        \
    }

ALLIUM_NEW_ALIGNED(new)
ALLIUM_NEW_ALIGNED(new[])

#define ALLIUM_DELETE_ALIGNED(name)                                                                          \
    ALLIUM_NEW_REPLACES void operator name(void *p, std::align_val_t) noexcept                               \
    {                                                                                                        \
        free(p);                                                                                             \
    }                                                                                                        \
    ALLIUM_NEW_REPLACES void operator name(void *p, std::size_t, std::align_val_t) noexcept                  \
    {                                                                                                        \
        free(p);                                                                                             \
    }                                                                                                        \
    ALLIUM_NEW_REPLACES void operator name(void *p, std::align_val_t, const std::nothrow_t &) noexcept       \
    {                                                                                                        \
        free(p);                                                                                             \
    }

ALLIUM_DELETE_ALIGNED(delete)
ALLIUM_DELETE_ALIGNED(delete[])
#endif

#endif
