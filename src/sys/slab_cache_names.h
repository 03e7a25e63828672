/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_SLAB_CACHE_NAMES_H
#define SYS_SLAB_CACHE_NAMES_H

/*
 * Names of slab caches by the numbers that programs gave them (bpf/slab.bpf.h).
 *
 * Runs in: the tool. Threads: one. Owns: what it hands out, until slab_cache_names_free().
 */

#include "sys/session.h"

struct cache_names;

struct cache_names *slab_cache_names_new(void);
/** NULL is allowed. */
void slab_cache_names_free(struct cache_names *n);

/** The name with that number; NULL: there is none, as of 0. */
const char *slab_cache_names_find(struct cache_names *n, struct sys_session *s, uint32_t number);

#endif
