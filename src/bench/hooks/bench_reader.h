/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BENCH_READER_H
#define BENCH_READER_H

/*
 * A thread that empties rings as the tool does: it polls, copies packets, and publishes how far it has come. It does
 * nothing with the copies.
 *
 * Runs in: the helper of `allium bench`. Threads: all in the first. Owns: the thread, until the process ends.
 */

#include <stdbool.h>
#include <stdint.h>

#include "ring/ring_layout.h"

/** Starts to read the rings of the file. Returns whether that is possible. */
bool bench_reader_start(const void *file, uint64_t bytes, struct ring_positions *positions);
/** Waits until the reader has seen so many events, for a limited time. */
void bench_reader_wait(uint64_t events);
/** Returns the events that the reader has seen. */
uint64_t bench_reader_events(void);

#endif
