/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TAG_HELPER_SCOPE_H
#define TAG_HELPER_SCOPE_H

/*
 * Allocating helpers of the program, such as its own xmalloc(): while one runs, the requests of its thread are
 * charged to the caller of the helper.
 *
 * Runs in: target. Threads: each for itself; requests of a signal handler are charged as those of its thread.
 */

#include <stdbool.h>

#include "allium/tag.h"

/** Returns the tag that a request of `tag` is charged to: that of the running helper, else `tag` itself. */
struct allium_tag *helper_scope_of(struct allium_tag *tag);
/** May a helper be running in this thread? */
bool helper_scope_is_on(void);

#endif
