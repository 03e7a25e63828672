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
 * Does the hook of realloc() count? Not if the allocator's realloc() calls another function of the family, such as
 * malloc(), through its symbol, because then the hook of the other function counts.
 */
bool hooks_count_realloc(void);
/**
 * The values of next_entries.strdup and next_entries.strndup if the allocator has a strndup() that calls no hook. They
 * copy the string by this strndup(), and count the copy.
 */
char *hooks_strdup(const char *s);
char *hooks_strndup(const char *s, size_t most);
/** The cold half of free(), reached by a tail jump: counts the free of `p`, then calls the real free(). */
void hooks_free_cold(void *p);

#endif
