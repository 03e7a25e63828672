/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_SAMPLER_H
#define AGENT_SAMPLER_H

/*
 * The sampler: decides which allocations become samples, and records the allocation, reallocation and free of a sample.
 *
 * Runs in: target, cold paths. Threads: any, signal handlers included.
 *
 * Order: a sample leaves the live table before the real free() or realloc(), and goes back unchanged if realloc()
 * fails. It enters the table only after the real function has returned. So the table never has an address that the
 * allocator may have given to another thread.
 *
 * Sampling is by bytes, with exponential gaps: a request becomes a sample if it covers the next point of a Poisson
 * process on the bytes that this thread requests, so with probability 1 - exp(-size / period). Period 1 is exact: each
 * request that succeeds is recorded with weight 1, and nothing is drawn.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/thread_state.h"
#include "unwind/walk.h"

/** A new sample. All 0: there is none, or it could not be recorded. */
struct sample_allocated {
    uint64_t serial;
    uint64_t weighted_bytes; /* the bytes that the sample stands for */
};

/** A sample that was freed, or that a failed realloc() has left as it was. `serial` 0: there was none. */
struct sample_released {
    uint64_t serial, size_bytes;
    uint64_t weighted_bytes; /* as in its struct sample_allocated */
};

/** A sample that was removed from the live table, but is not counted as freed yet. */
struct taken {
    uint32_t record;     /* LIVE_TABLE_NONE: nothing was taken */
    uint32_t generation; /* process.generation at the removal: a signal handler may fork afterwards */
    uintptr_t address;
    struct sample_released released; /* set when the sample is counted as freed */
};

/** Subtracts `size` from the bytes to the thread's next sample. True: this request is a sample if it succeeds. */
ONE_COPY bool sample_is_due(struct thread *t, size_t size);
/** Records a sample of `size` requested bytes at `p`, which the allocator has just returned. Returns the sample. */
ONE_COPY struct sample_allocated sample_allocated(struct thread *t, const struct walk_start *start, void *p,
                                                  size_t size);
/** If there is a sample at `p`, which is about to be reallocated, removes the sample from the live table. */
ONE_COPY struct taken sample_take(struct thread *t, void *p);
/**
 * If `p` is a sample, counts it as freed. For free(), `moved` is NULL, and the function calls the probes; the real
 * free() follows. For realloc(), which has returned, `moved` is the result of sample_take(): the function stores in
 * moved->released what the caller passes to the probes.
 */
ONE_COPY void sample_freed(struct thread *t, const struct walk_start *start, void *p, struct taken *moved);
/** Puts the sample back into the live table, because realloc() failed. Returns it; `serial` 0: none, or no room. */
ONE_COPY struct sample_released sample_put_back(struct thread *t, struct taken taken);

#endif
