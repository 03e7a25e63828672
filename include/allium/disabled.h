/* SPDX-License-Identifier: BSD-2-Clause */
#if !defined(ALLIUM_DISABLED_H) && !defined(__ASSEMBLER__)
#define ALLIUM_DISABLED_H

/*
 * Declares the interface of <allium/tag.h> and <allium/helper.h>, and does nothing: for builds with -DALLIUM_DISABLE,
 * which need no library, on any platform. Functions evaluate their arguments, macros discard them.
 *
 * This file is also installed as allium/tag.h, allium/helper.h, allium/malloc_hooks.h and allium/operator_new.hh in
 * share/allium/stub: a project that ships with tags can carry that folder along, and build where allium is missing.
 */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define ALLIUM_DISABLED_NULL        nullptr
#define ALLIUM_DISABLED_DECLARATION static_assert(true, "")
extern "C" {
#else
#define ALLIUM_DISABLED_NULL ((struct allium_tag *)0)
#if defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define ALLIUM_DISABLED_DECLARATION _Static_assert(1, "")
#else
#define ALLIUM_DISABLED_DECLARATION extern void allium_disabled_(void)
#endif
#endif

struct allium_tag;

#define ALLIUM_TAG_VERSION                     0 /* no tags */
#define ALLIUM_TAG(class, name)                ALLIUM_DISABLED_NULL
#define ALLIUM_TAG_FIELDS(class, name, fields) ALLIUM_DISABLED_NULL

#define ALLIUM_HELPER(function)                            ALLIUM_DISABLED_DECLARATION
#define ALLIUM_HELPER_OUTERMOST(function)                  ALLIUM_DISABLED_DECLARATION
#define ALLIUM_HELPER_IS(class, name, function, outermost) ALLIUM_DISABLED_DECLARATION

/* Of events: no declaration, no code, and no argument is evaluated. */
#define ALLIUM_EVENT(provider, ...) ALLIUM_DISABLED_DECLARATION
#define ALLIUM_SPAN(provider, ...)  ALLIUM_DISABLED_DECLARATION
#define allium_emit(provider, ...)  ((void)0)
#define allium_begin(provider, ...) ((void)0)
#define allium_end(provider, name)  ((void)0)
#define allium_log(provider, ...)   ((void)0)
#define ALLIUM_SNAPSHOT(reason)     ((void)0)

#if defined(__GNUC__)
#define ALLIUM_DISABLED_INLINE static __inline__ __attribute__((unused))
#else
#define ALLIUM_DISABLED_INLINE static inline
#endif

ALLIUM_DISABLED_INLINE int allium_tag_state(const struct allium_tag *tag)
{
    return (void)tag, 0;
}

ALLIUM_DISABLED_INLINE void allium_account(struct allium_tag *tag, size_t bytes)
{
    (void)tag, (void)bytes;
}

ALLIUM_DISABLED_INLINE void allium_unaccount(struct allium_tag *tag, size_t bytes)
{
    (void)tag, (void)bytes;
}

ALLIUM_DISABLED_INLINE void allium_track(struct allium_tag *tag, const void *object, size_t bytes)
{
    (void)tag, (void)object, (void)bytes;
}

ALLIUM_DISABLED_INLINE void allium_untrack(const void *object)
{
    (void)object;
}

ALLIUM_DISABLED_INLINE void allium_failed(struct allium_tag *tag)
{
    (void)tag;
}

ALLIUM_DISABLED_INLINE uint64_t allium_latency_start(struct allium_tag *tag)
{
    return (void)tag, 0;
}

ALLIUM_DISABLED_INLINE void allium_latency_stop(struct allium_tag *tag, uint64_t started)
{
    (void)tag, (void)started;
}

ALLIUM_DISABLED_INLINE int allium_should_fail(struct allium_tag *tag)
{
    return (void)tag, 0;
}

#ifdef __cplusplus
}
#endif

#endif
