/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_PROBES_H
#define AGENT_PROBES_H

/*
 * The probes allium:* and otel_memory:* (allium-probes(7) documents them), which report samples to tracers.
 *
 * A tracer in the kernel walks the stack by frame pointers, from the function that contains the probe. So the probes
 * are always inlined, into functions with a frame pointer: the cold halves of the hooks, and functions with
 * PROBE_FROM_HERE().
 *
 * Runs in: target, cold paths. Threads: any, signal handlers included.
 *
 * Order: an allocation is reported after the sample was recorded, a free before the real free(), so that the lives of
 * two samples at one address never overlap. For realloc(), otel_memory, which identifies samples by address, reports
 * the free before the call, and the allocation again if the call fails; allium, which identifies samples by serial,
 * reports both after the call.
 *
 * No probe has more than six arguments, because bpftrace 0.17 cannot read more.
 */

#include <stddef.h>
#include <stdint.h>

#include "agent/sampler/sampler.h"
#include "base/sigsafe/compiler.h"
#include "base/sigsafe/usdt.h"

/** Makes the compiler give the function that contains this a frame pointer. */
#define PROBE_FROM_HERE() __asm__ volatile("" ::"r"(__builtin_frame_address(0)))
#define PROBE_INLINE      static inline __attribute__((always_inline))

PROBE_INLINE void probe_otel_alloc(const void *p, size_t size, uint64_t weighted_bytes)
{
    USDT3("otel_memory", "alloc", (uintptr_t)p, size, weighted_bytes);
}

PROBE_INLINE void probe_malloc(const void *p, size_t size, struct sample_allocated allocated)
{
    if (unlikely(!allocated.serial))
        return;
    USDT4("allium", "malloc", (uintptr_t)p, size, allocated.weighted_bytes, allocated.serial);
    probe_otel_alloc(p, size, allocated.weighted_bytes);
}

PROBE_INLINE void probe_calloc(const void *p, size_t size, struct sample_allocated allocated)
{
    if (unlikely(!allocated.serial))
        return;
    USDT4("allium", "calloc", (uintptr_t)p, size, allocated.weighted_bytes, allocated.serial);
    probe_otel_alloc(p, size, allocated.weighted_bytes);
}

/** Reports that a sample was freed. For free(), this is before the real free(); for realloc(), after the real call. */
PROBE_INLINE void probe_free(uintptr_t address, uint64_t size, uint64_t weighted_bytes, uint64_t serial)
{
    USDT4("allium", "free", address, size, weighted_bytes, serial);
}

PROBE_INLINE void probe_otel_free(uintptr_t address)
{
    USDT1("otel_memory", "free", address);
}

/**
 * Called if realloc() has failed: reports to otel_memory that the sample at `old` was allocated, because
 * probe_otel_free() has reported its free before the call. `stayed.serial` 0: there is no sample.
 */
PROBE_INLINE void probe_realloc_failed(const void *old, struct sample_released stayed)
{
    if (stayed.serial)
        probe_otel_alloc(old, stayed.size_bytes, stayed.weighted_bytes);
}

PROBE_INLINE void probe_realloc(const void *p, size_t size, struct sample_allocated allocated,
                                const void *old, const struct sample_released *released)
{
    if (unlikely(!allocated.serial && !released->serial))
        return;
    if (released->serial)
        probe_free((uintptr_t)old, released->size_bytes, released->weighted_bytes, released->serial);
    USDT6("allium", "realloc", (uintptr_t)p, size, allocated.weighted_bytes, allocated.serial, (uintptr_t)old,
          released->serial);
    if (allocated.serial)
        probe_otel_alloc(p, size, allocated.weighted_bytes);
}

#endif
