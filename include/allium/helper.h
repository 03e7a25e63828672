/* SPDX-License-Identifier: BSD-2-Clause */
#if defined(ALLIUM_DISABLE)
#include "allium/disabled.h"
#elif !defined(ALLIUM_HELPER_H) && !defined(__ASSEMBLER__) /* -include reaches .S files, too */
#define ALLIUM_HELPER_H

/*
 * For a program's own functions that allocate on behalf of their callers: xmalloc(), the grow() of a string
 * class, operator new.
 *
 *     void *xmalloc(size_t n)
 *     {
 *         ALLIUM_HELPER(xmalloc);      from here to the end of the function,
 *         void *p = malloc(n);         allocations are charged to the caller
 *         ...
 *
 * Each call of the helper is a place, identified by its return address. So callers need not be built with
 * tags, and calls by pointer, calls with any number of arguments and calls in templates are places, too. If
 * one helper calls another, the call of the inner helper is the place; but if the outer helper uses
 * ALLIUM_HELPER_OUTERMOST(), the call of the outer helper is the place.
 *
 * The effect ends when the function is left by return or by an exception (in C: only with -fexceptions). After
 * longjmp() out of the function, the thread's next request that is made further out on the stack ends the
 * effect. The function is not inlined.
 */

#include "allium/tag.h"

#ifdef __cplusplus
#define ALLIUM_CODE(function) reinterpret_cast<const void *>(function)
extern "C" {
#else
#define ALLIUM_CODE(function) ((const void *)(function))
#endif

/*
 * A scope: the thread's requests are charged to `tag`, the tag of a call of a helper; NULL: no helper runs.
 * `frame` is the frame of the helper: while the helper runs, frame[1] is its return address `returns_to`.
 * `outermost`: not 0 if helpers that this helper calls keep the scope. Each helper stores the scope that the
 * thread had before in a variable of this type, with `begun` set to 1, and restores that scope at its end. If
 * `begun` is 0, there is nothing to restore.
 */
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
 * The first declaration in a helper. `function` is the helper's name, or 0 if several functions have the
 * name; the tag is then called 0, too: ALLIUM_HELPER_IS() gives it another name. Another function F may reach
 * the helper by a tail call (a jump). If `function` is given, the requests are then charged to F, unless F was
 * called by a pointer; if `function` is 0, they are charged to the call of F.
 */
#define ALLIUM_HELPER(function)           ALLIUM_HELPER_IS("helper", #function, function, 0)
#define ALLIUM_HELPER_OUTERMOST(function) ALLIUM_HELPER_IS("helper", #function, function, 1)

/* A static variable holds the address of a label in the helper. Compilers do not copy a function that contains
 * such a label, so the helper is not inlined. */
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
