/* SPDX-License-Identifier: BSD-2-Clause */
#include "allium/helper.h"

#include <stdint.h>

#include "tag/callsite_tags.h"
#include "tag/helper_scope.h"
#include "tag/tag_internal.h"

#define NEAR_BYTES (64u << 10)

/*
 * The scope of the thread's running helper. While there is one, all requests of the thread take the slow paths, so
 * inline code need not check for a helper. If longjmp() leaves a helper, the scope ends only at a later request: one
 * that is made further out on the stack, or one that finds another return address in the helper's frame. The frame is
 * read only if it is near the stack pointer, because the helper's stack may no longer exist.
 */
static __thread struct allium_helper_scope charged __attribute__((tls_model("initial-exec")));

static void set(struct allium_helper_scope to)
{
    bool was = charged.tag, is = to.tag;
    charged = to;
    if (is != was)
        tag_use_cold_paths(is);
}

static void end_stale_scope(uintptr_t here)
{
    uintptr_t slot = (uintptr_t)(charged.frame + 1);
    if (charged.tag && (slot <= here || (slot - here < NEAR_BYTES && charged.frame[1] != charged.returns_to)))
        set((struct allium_helper_scope){0});
}

static const char *text_of(const struct allium_tag *helper)
{
    return (const char *)((uintptr_t)&helper->text + (uintptr_t)(intptr_t)helper->text);
}

TAG_EXPORT struct allium_helper_scope allium_helper_begin(struct allium_tag *helper, void *at,
                                                          const void *function, int outermost)
{
    void **frame = at;
    end_stale_scope((uintptr_t)(frame + 1));
    struct allium_helper_scope before = charged;
    before.begun = 1;
    if ((charged.tag && charged.outermost) || !tag_account(helper))
        return before;
    struct allium_tag *tag = callsite_tag(frame[1], function, text_of(helper));
    if (tag)
        set((struct allium_helper_scope){
            .tag = tag, .frame = frame, .returns_to = frame[1], .outermost = outermost});
    return before;
}

TAG_EXPORT void allium_helper_end(const struct allium_helper_scope *before)
{
    set(*before);
}

struct allium_tag *helper_scope_of(struct allium_tag *tag)
{
    if (!charged.tag)
        return tag;
    end_stale_scope((uintptr_t)__builtin_frame_address(0));
    return charged.tag ? charged.tag : tag;
}

bool helper_scope_is_on(void)
{
    return charged.tag;
}
