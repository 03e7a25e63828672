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

/** Called once, when the process starts: reads values that its fork children inherit and need not read again. */
void tracer_size_begin(void);
/** Returns the number of CPUs that get rings. */
uint32_t tracer_size_cpus(void);

/**
 * Returns the size of each ring in bytes, a power of two: the size that the user asks for, or 4 MiB. It is smaller if
 * the shared ring and those of the CPUs that the process may use would exceed half of the space that is left in the
 * file system of the ledger, a 16th of the room in the memory cgroups, or, if the user asks for no size, 256 MiB; but
 * never below TRACER_RING_LEAST_BYTES. `cpus`: the number of CPUs that have a ring in the file. Resets the count of
 * bytes that tracer_may_grow() has granted.
 */
uint64_t tracer_ring_bytes(uint32_t cpus);
/** Returns whether the rings may take `bytes` more; checks the surroundings once for each MiB. */
bool tracer_may_grow(uint64_t bytes);
/** Resets the count of bytes that tracer_may_grow() has granted, when new rings or sums are made. */
void tracer_grow_anew(void);

#endif
