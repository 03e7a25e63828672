/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_HOOKS_H
#define AGENT_HOOKS_H

/*
 * Cold halves of hooks that other files jump to.
 *
 * Runs in: target. Threads: any.
 */

#include <stdbool.h>
#include <stddef.h>

/**
 * Is realloc() counted here? Not if the allocator's realloc() calls malloc() through its symbol: then malloc() counts.
 */
bool hooks_count_realloc(void);
/** Copy a string by the allocator's own function, and count the copy. For next_entries. */
char *hooks_strdup(const char *s);
char *hooks_strndup(const char *s, size_t most);
/** Books the free of `p`, then frees it. */
void hooks_free_cold(void *p);

#endif
