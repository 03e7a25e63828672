/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TAG_HELPER_SCOPE_H
#define TAG_HELPER_SCOPE_H

/*
 * Helpers of a program's own: while one runs, what its thread asks for is charged to the helper's caller.
 *
 * Runs in: target. Threads: each for itself; signal handlers included, whose requests are charged as their thread's.
 */

#include <stdbool.h>

#include "allium/tag.h"

/** Whom a request of this tag is charged to: the tag itself, unless a helper is at work. */
struct allium_tag *helper_scope_of(struct allium_tag *tag);
/** A helper may be at work in this thread. */
bool helper_scope_is_on(void);

#endif
