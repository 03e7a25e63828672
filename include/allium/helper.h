/* SPDX-License-Identifier: BSD-2-Clause */
#if !defined(ALLIUM_HELPER_H) && !defined(__ASSEMBLER__) /* -include reaches .S files, too */
#define ALLIUM_HELPER_H

/*
 * Helpers of a program's own, which ask for memory for others: xmalloc(), a string's grow(), operator new.
 *
 *     void *xmalloc(size_t n)
 *     {
 *         ALLIUM_HELPER(xmalloc);      from here to the end of the function, what is asked for is charged to the caller
 *         void *p = malloc(n);
 *         ...
 *
 * Each call of the helper is a place, by where it returns to; so callers need not be built with tags, and calls by
 * pointer, with any number of arguments and by templates are places, too. Where one helper calls another, its call is
 * the place: the innermost wins; or with ALLIUM_HELPER_OUTERMOST() the caller of the outer one.
 *
 * It ends where the function is left, by return, by an exception or by longjmp(). The function is not inlined.
 */

#include "allium/tag.h"

#ifdef __cplusplus
#define ALLIUM_CODE(function) reinterpret_cast<const void *>(function)
extern "C" {
#else
#define ALLIUM_CODE(function) ((const void *)(function))
#endif

/* Who is charged, for a helper that has its return address behind this frame; a helper keeps what was so before. */
struct allium_helper_scope {
    struct allium_tag *tag;
    void *const *frame;
    void *returns_to;
    int outermost;
    int begun;
};

struct allium_helper_scope allium_helper_begin(struct allium_tag *helper, void *frame, const void *function,
                                               int outermost);
void allium_helper_end(const struct allium_helper_scope *before);

ALLIUM_INLINE void allium_helper_left(const struct allium_helper_scope *before)
{
    if (ALLIUM_UNLIKELY(before->begun))
        allium_helper_end(before);
}

/*
 * The first declaration in a helper; `function` is its name, or 0 where that names several. If it is told, calls of a
 * function that jumps to the helper as the last thing it does are charged to that function, and not to its caller.
 */
#define ALLIUM_HELPER(function)           ALLIUM_HELPER_IS("helper", #function, function, 0)
#define ALLIUM_HELPER_OUTERMOST(function) ALLIUM_HELPER_IS("helper", #function, function, 1)

/* No copy is made of a function that has the address of a label in a static variable: so it is not inlined. */
#define ALLIUM_HELPER_IS(class, name, function, outermost)                                                   \
    struct allium_helper_scope allium_scope_ __attribute__((__cleanup__(allium_helper_left), __unused__)) =  \
        __extension__({                                                                                      \
            __label__ allium_stays_;                                                                         \
            static const void *const allium_at_ = &&allium_stays_;                                           \
            struct allium_tag *allium_helper_ = ALLIUM_DESCRIPTOR_WITH(class "\0" name "\0");                \
            struct allium_helper_scope allium_before_ = {ALLIUM_NULL, ALLIUM_NULL, ALLIUM_NULL, 0, 0};       \
        allium_stays_:                                                                                       \
            __asm__ __volatile__("" : : "m"(allium_at_));                                                    \
            if (allium_tag_state(allium_helper_))                                                            \
                allium_before_ = allium_helper_begin(allium_helper_, __builtin_frame_address(0),             \
                                                     ALLIUM_CODE(function), outermost);                      \
            allium_before_;                                                                                  \
        })

#ifdef __cplusplus
}
#endif

#endif
