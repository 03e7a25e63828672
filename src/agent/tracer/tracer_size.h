/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_TRACER_SIZE_H
#define AGENT_TRACER_SIZE_H

/*
 * How large the rings may be, and whether they may take more memory now.
 *
 * Runs in: target, cold paths: when rings are made, and when one grows. Threads: any.
 */

#include <stdbool.h>
#include <stdint.h>

/* The smallest ring, of packets of the smallest size. */
#define TRACER_RING_LEAST_BYTES (64u << 10)

/** Reads the options of the tracer in ALLIUM_SITES: ",buffer=SIZE" of a CPU, ",clock=mono". Called once. */
void tracer_read_options(void);
/** Returns whether the times of events are those of CLOCK_MONOTONIC, in any case. */
bool tracer_wants_mono(void);
/**
 * Returns the bytes of a CPU's ring, a power of two: those that are asked for (4 MiB), but together with the shared
 * ring at most half of what the file system of the ledger has free, a 16th of the room in the memory cgroups, and, if
 * no size is asked for, 256 MiB. `cpus`: how many have a ring in the file.
 */
uint64_t tracer_ring_bytes(uint32_t cpus);
/** Returns whether the rings may take `bytes` more; checks the surroundings once for each MiB. */
bool tracer_may_grow(uint64_t bytes);
/** To be called when new rings are made: forgets what those before have taken. */
void tracer_grow_anew(void);

#endif
