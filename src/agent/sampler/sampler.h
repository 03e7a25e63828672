/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_SAMPLER_H
#define AGENT_SAMPLER_H

/*
 * The sampler: which allocation becomes a sample, and what happens when it is made, freed or reallocated.
 *
 * Runs in: target, cold paths. Threads: any, signal handlers included.
 *
 * Order: an entry leaves the live table before the call that can free its address and goes back unchanged if that call
 * fails; it enters only after the real call has returned. So the table never holds an address that the allocator may
 * have given to somebody else.
 *
 * Sampling is by bytes with exponential gaps: a sample is drawn if the request covers the next point of a Poisson
 * process on the bytes this thread asks for, p = 1 - exp(-size / period). Period 1 is exact: every success is booked
 * with weight 1, and nothing is drawn.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/thread_state.h"
#include "unwind/walk.h"

/** A sample that was made. All 0: it could not be booked. */
struct sample_made {
    uint64_t serial;
    uint64_t weighted_bytes; /* what it stands for */
};

/** A sample that is none any more, or that a failed call left as it was. `serial` 0: there was none. */
struct sample_gone {
    uint64_t serial, size_bytes;
    uint64_t weighted_bytes; /* as when it was made */
};

/** A sample taken out of the live table that is not booked as freed yet. */
struct taken {
    uint32_t record;     /* LIVE_TABLE_NONE: nothing was taken */
    uint32_t generation; /* of the process that took it: a handler may fork meanwhile */
    uintptr_t address;
    struct sample_gone gone; /* once it is */
};

/** Consumes `size` bytes of this thread's gap (the cold half). True: this request is a sample if it succeeds. */
ONE_COPY bool sample_is_due(struct thread *t, size_t size);
/** Books a sample at `p`, just returned by the program's allocator. */
ONE_COPY struct sample_made sample_made(struct thread *t, const struct walk_start *start, void *p,
                                        size_t size);
/** Takes `p`, about to be reallocated, out of the live table if it is there. */
ONE_COPY struct taken sample_take(struct thread *t, void *p);
/**
 * `p` is about to be freed, or (`moved`: what sample_take() said) was reallocated: if it is a sample, it is booked as
 * gone. What was freed is told here; of what was moved, `moved->gone` says it.
 */
ONE_COPY void sample_freed(struct thread *t, const struct walk_start *start, void *p, struct taken *moved);
/** The call failed: the sample is as it was. */
ONE_COPY struct sample_gone sample_put_back(struct thread *t, struct taken taken);

#endif
