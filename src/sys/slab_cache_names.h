/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_SLAB_CACHE_NAMES_H
#define SYS_SLAB_CACHE_NAMES_H

/*
 * The names of slab caches by the numbers that programs gave them (bpf/slab.bpf.h).
 *
 * Runs in: the tool. Threads: one. Owns: the names, until slab_cache_names_free().
 */

#include "sys/session.h"

struct cache_names;

struct cache_names *slab_cache_names_new(void);
/** NULL is allowed. */
void slab_cache_names_free(struct cache_names *n);

/** Returns the name for that number; NULL: there is none, as for 0. */
const char *slab_cache_names_find(struct cache_names *n, struct sys_session *s, uint32_t number);

#endif
