/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_HOOKS_H
#define AGENT_HOOKS_H

/*
 * Cold halves of hooks that other files lead to, by tail jumps.
 *
 * Runs in: target. Threads: any.
 */

#include <stdbool.h>

/** realloc() leads to a half of ours that counts; not where the allocator's own calls others of the family. */
bool hooks_count_realloc(void);
/** Books the free of `p`, then frees it. */
void hooks_free_cold(void *p);

#endif
