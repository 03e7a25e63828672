/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_HOOKS_H
#define AGENT_HOOKS_H

/*
 * Functions of hooks.c that other files use.
 *
 * Runs in: target. Threads: any.
 */

#include <stdbool.h>
#include <stddef.h>

/**
 * Does the hook of realloc() count? Not if the allocator's realloc() calls malloc() through its symbol, because then
 * the hook of malloc() counts.
 */
bool hooks_count_realloc(void);
/** The values of next_entries.strdup and next_entries.strndup if the allocator has functions of its own for both. They
 * copy the string by the allocator's strndup(), and count the copy. */
char *hooks_strdup(const char *s);
char *hooks_strndup(const char *s, size_t most);
/** Counts the free of `p`, then calls the real free(). */
void hooks_free_cold(void *p);

#endif
