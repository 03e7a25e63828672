/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_KERNEL_RINGS_H
#define COLLECT_KERNEL_RINGS_H

/*
 * The layout and the first content of the array of rings that the kernel's side of a trace writes
 * (bpf/kernel_ring.bpf.h). It is laid out as a file of rings (ring/ring_layout.h), with the reader's positions behind
 * the heads. Each CPU has two rings: `cpu`, and `cpus` + `cpu` for what happens amid a write of the first one. The ring
 * that threads share has no memory in it.
 *
 * Runs in: the tool. Threads: any. Pure.
 */

#include <stdbool.h>
#include <stdint.h>

#include "ring/ring_layout.h"

struct kernel_rings {
    uint32_t cpus, rings;
    bool overwrites;
    uint64_t packet_bytes, ring_bytes;
    uint64_t read_at, data_at; /* of the positions, of the first ring */
    uint64_t bytes;            /* the part that has memory */
    uint64_t mapped_bytes;     /* a reader must be able to read these; zeros follow the memory */
};

/** `ring_bytes`: of each ring, a power of two from 4 * RING_PACKET_BYTES_MIN on. */
void kernel_rings_plan(struct kernel_rings *r, uint32_t cpus, uint64_t ring_bytes, bool overwrites);
/** Fills in the beginning of an array of zeros. */
void kernel_rings_begin(const struct kernel_rings *r, void *array);
/** Returns a ring's head and counts of losses. `ring` may be the number of rings: the counts of CPUs without a ring. */
struct ring_cpu *kernel_rings_control(void *array, uint32_t ring);
/** Tells the writers up to where a ring was read. */
void kernel_rings_took(const struct kernel_rings *r, void *array, uint32_t ring, uint64_t position);
/** Returns the CPU of a ring, of as many rings. */
static inline uint32_t kernel_rings_cpu(uint32_t ring, uint32_t rings)
{
    return ring % (rings / 2);
}

#endif
