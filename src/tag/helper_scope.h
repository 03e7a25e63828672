/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TAG_HELPER_SCOPE_H
#define TAG_HELPER_SCOPE_H

/*
 * Allocating helpers of the program, such as its own xmalloc(): while a helper runs, the requests of its thread are
 * charged to the caller of the helper.
 *
 * Runs in: target. Threads: each has its own scope. A signal handler that interrupts a helper shares the helper's
 * scope.
 */

#include <stdbool.h>

#include "allium/tag.h"

/** Returns the tag to charge for a request of `tag`: the tag of the call of a running helper, or `tag` if none runs. */
struct allium_tag *helper_scope_of(struct allium_tag *tag);
/** Returns whether this thread has the scope of a helper, which longjmp() may have left without ending the scope. */
bool helper_scope_is_on(void);

#endif
