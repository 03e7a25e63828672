/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_MEMLEAK_KERNEL_SITE_H
#define SYS_MEMLEAK_KERNEL_SITE_H

/*
 * The call that asked the page allocator for a block, from the stack of that event, which does not tell the call.
 *
 * Runs in: the tool. Threads: one. Owns: what it found for each stack, until memleak_sites_free().
 */

#include "sys/session.h"

struct memleak_sites;

struct memleak_sites *memleak_sites_new(void);
/** NULL is allowed. */
void memleak_sites_free(struct memleak_sites *m);

/**
 * Returns the return address of the innermost call in the stack with that number that is not in a function of the page
 * allocator; 0: there is no stack.
 */
uint64_t memleak_sites_find(struct memleak_sites *m, struct sys_session *s, int stack);

#endif
