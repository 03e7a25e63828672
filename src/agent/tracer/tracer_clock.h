/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_TRACER_CLOCK_H
#define AGENT_TRACER_CLOCK_H

/*
 * The clock of the events, enum ring_clock: the time stamp counter, with anchors of CLOCK_MONOTONIC in the file of
 * rings, for all events or for some; or CLOCK_MONOTONIC itself, if the CPU has no invariant counter, or the user asks
 * for it; or a number that all threads take from one counter; or nothing.
 *
 * Runs in: target. Threads: any, signal handlers included; no lock.
 */

#include <stdbool.h>
#include <stdint.h>

#include "ring/ring_layout.h"

/** Returns the clock of the events. With RING_CLOCK_TSC, the hot functions may read the counter. */
enum ring_clock tracer_clock(void);
/** Returns the time now, in the unit of the file; the last time if the program has forbidden itself to read clocks. */
uint64_t tracer_clock_ticks(void);
/** Writes the first anchor of new rings. */
void tracer_clock_begin(void);
/** Called on slow paths: writes an anchor if the last one is old. No system call. */
void tracer_clock_anchor(void);

#endif
