/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BENCH_MEMORY_H
#define BENCH_MEMORY_H

/*
 * Memory of processes: their proportional set size, in which a page that several processes share counts once in all.
 *
 * Runs in: the helper of `allium bench`. Threads: the first. Owns: nothing.
 */

#include <stdint.h>

/** Returns the bytes of a process ("self", or its number), 0 if that cannot be known. */
uint64_t bench_memory_of(const char *pid);
/** Returns the sum of all processes in the mount namespace of this one, which is not among them. */
uint64_t bench_memory_beside(void);

#endif
