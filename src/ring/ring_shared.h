/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RING_SHARED_H
#define RING_SHARED_H

/*
 * The ring that threads share which cannot run restartable sequences: their libc does not register them, a debugger
 * steps through them, or they are vfork children.
 *
 * Runs in: target. Threads: any, signal handlers and vfork children included; no malloc, no lock.
 */

#include <stdbool.h>
#include <stdint.h>

#include "ring/ring_write.h"

/** As ring_append(). */
bool ring_shared_append(struct ring *ring, uint64_t *event, uint32_t words);
/** Makes bytes `place` to `end` of a CPU's ring, or with the number of CPUs of the shared one, ready to be touched. */
bool ring_reach(struct ring *ring, uint32_t cpu, uint64_t place, uint64_t end);

#endif
