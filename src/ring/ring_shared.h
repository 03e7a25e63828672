/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RING_SHARED_H
#define RING_SHARED_H

/*
 * Writes into the shared ring: the ring of all threads that cannot run restartable sequences, because their libc does
 * not register them, a debugger steps through them, or they are vfork children.
 *
 * Runs in: target. Threads: any, signal handlers and vfork children included; no malloc, no lock.
 */

#include <stdbool.h>
#include <stdint.h>

#include "ring/ring_write.h"

/** As ring_append(). */
bool ring_shared_append(struct ring *ring, uint64_t *event, uint32_t words);
/** As ring_count_lost(). */
void ring_shared_count_lost(struct ring *ring, enum ring_loss why);
/**
 * Backs the bytes from `place` to `end` of a ring with memory. `cpu`: the CPU of the ring; the number of CPUs: the
 * shared ring. Returns false if there is no memory.
 */
bool ring_reach(struct ring *ring, uint32_t cpu, uint64_t place, uint64_t end);

#endif
