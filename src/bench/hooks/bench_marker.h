/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BENCH_MARKER_H
#define BENCH_MARKER_H

/*
 * The sink `trace-marker`: lines that the program writes into the buffer of ftrace, in a tracing instance of its own.
 *
 * Runs in: the helper of `allium bench`, as root. Threads: hits in any, all else in the first. Owns: the instance,
 * which a process removes when the helper has ended.
 */

#include <stdint.h>

#define BENCH_MARKER_WARM 10000u /* the buffers exist once they are made */

const char *bench_marker_begin(unsigned threads);
void bench_marker_hit(void *function, void *caller);
/** Counts what is in the buffers, and empties them. */
void bench_marker_settle(uint64_t hits);
uint64_t bench_marker_hits(void);
uint64_t bench_marker_lost(void);
uint64_t bench_marker_bytes(void);
uint64_t bench_marker_memory(void);

#endif
