/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_PROBES_H
#define AGENT_PROBES_H

/*
 * The probes allium:* and otel_memory:* (allium-probes(7) documents them): what the sampler tells whoever listens.
 *
 * Their sites lie in functions whose frame pointers lead to the program's, the cold halves of the hooks, or those that
 * say PROBE_FROM_HERE(): so a listener in the kernel can walk on from there. Hence inlined always.
 *
 * Runs in: target, cold paths. Threads: any, signal handlers included.
 *
 * Order: a beginning is told after the block is in the books, an end before the block is given back; so of one address
 * no two lives overlap. Of a realloc otel_memory, which goes by addresses, tells the end before the call, and a
 * beginning anew if that fails; allium, which goes by serials, tells both after it.
 *
 * No probe has more than six arguments: bpftrace 0.17 cannot read those.
 */

#include <stddef.h>
#include <stdint.h>

#include "agent/sampler/sampler.h"
#include "base/sigsafe/compiler.h"
#include "base/sigsafe/usdt.h"

/** The function that this stands in has a frame pointer. */
#define PROBE_FROM_HERE() __asm__ volatile("" ::"r"(__builtin_frame_address(0)))
#define PROBE_INLINE      static inline __attribute__((always_inline))

PROBE_INLINE void probe_otel_alloc(const void *p, size_t size, uint64_t weighted_bytes)
{
    USDT3("otel_memory", "alloc", (uintptr_t)p, size, weighted_bytes);
}

PROBE_INLINE void probe_malloc(const void *p, size_t size, struct sample_made made)
{
    if (unlikely(!made.serial))
        return;
    USDT4("allium", "malloc", (uintptr_t)p, size, made.weighted_bytes, made.serial);
    probe_otel_alloc(p, size, made.weighted_bytes);
}

PROBE_INLINE void probe_calloc(const void *p, size_t size, struct sample_made made)
{
    if (unlikely(!made.serial))
        return;
    USDT4("allium", "calloc", (uintptr_t)p, size, made.weighted_bytes, made.serial);
    probe_otel_alloc(p, size, made.weighted_bytes);
}

/** The sample at `address` is none any more; it still has its memory, unless it was reallocated. */
PROBE_INLINE void probe_free(uintptr_t address, uint64_t size, uint64_t weighted_bytes, uint64_t serial)
{
    USDT4("allium", "free", address, size, weighted_bytes, serial);
}

PROBE_INLINE void probe_otel_free(uintptr_t address)
{
    USDT1("otel_memory", "free", address);
}

/** The call failed: the sample at `old`, of which probe_otel_free() told, is as it was. */
PROBE_INLINE void probe_realloc_failed(const void *old, struct sample_gone stayed)
{
    if (stayed.serial)
        probe_otel_alloc(old, stayed.size_bytes, stayed.weighted_bytes);
}

PROBE_INLINE void probe_realloc(const void *p, size_t size, struct sample_made made, const void *old,
                                const struct sample_gone *gone)
{
    if (unlikely(!made.serial && !gone->serial))
        return;
    if (gone->serial)
        probe_free((uintptr_t)old, gone->size_bytes, gone->weighted_bytes, gone->serial);
    USDT6("allium", "realloc", (uintptr_t)p, size, made.weighted_bytes, made.serial, (uintptr_t)old,
          gone->serial);
    if (made.serial)
        probe_otel_alloc(p, size, made.weighted_bytes);
}

#endif
