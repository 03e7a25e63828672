/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_HOOKS_H
#define AGENT_HOOKS_H

/*
 * Cold halves of hooks that other files jump to.
 *
 * Runs in: target. Threads: any.
 */

#include <stdbool.h>

/**
 * Is realloc() counted here? Not if the allocator's realloc() calls malloc() through its symbol: then malloc() counts.
 */
bool hooks_count_realloc(void);
/** Books the free of `p`, then frees it. */
void hooks_free_cold(void *p);

#endif
