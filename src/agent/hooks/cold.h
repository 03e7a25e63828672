/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_COLD_H
#define AGENT_COLD_H

/*
 * Code that the cold halves of the allocation hooks share. Such a hook has a hot half, which only subtracts bytes from
 * a counter, and a cold half for all other work (hooks.c).
 *
 * Runs in: target. Threads: any, signal handlers included.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/hooks/next.h"
#include "agent/process.h"
#include "agent/sampler/sampler.h"
#include "agent/sites_link.h"

#define EXPORT __attribute__((visibility("default")))
/* The function begins on a cache line of its own. For malloc() and free() this saves one cycle of thirty (measured). */
#define HOT __attribute__((hot, aligned(64)))
/* For functions that are reached by a tail jump: their return address and their caller's frame are the program's. */
#define COLD __attribute__((noinline))

/**
 * Subtracts `size` from *left. Returns whether *left was greater than `size`; if not, *left is of no use afterwards.
 * Takes two instructions, including the jump on the result; compilers make three.
 */
static inline bool cold_subtract(uint64_t *left, uint64_t size)
{
    bool above;
#if defined(__x86_64__)
    __asm__("subq %2, %0" : "+r"(*left), "=@cca"(above) : "r"(size));
#else
    above = *left > size;
    *left -= size;
#endif
    return above;
}

/** The frame of the program that called the hook. Only valid in a COLD function. */
#define COLD_CALLER() WALK_CALLER()

/* Initialises the agent and the thread's state if necessary. False: the caller must not use the ledger. */
static inline bool cold_ensure_current(struct thread *t)
{
    if (!process.generation || !next.malloc)
        boot_agent();
    return t->busy || process_ensure_current_cold(t);
}

/** To be called before the real function. True: if the request succeeds, it is a sample; see cold_end(). */
static inline bool cold_begin(struct thread *t, size_t size)
{
    /* If the thread is attached to this process, it was here before, and the agent is initialised. */
    if (unlikely(!process_is_known(t)) && !cold_ensure_current(t))
        return false;
    if (unlikely(t->busy)) {
        t->busy = THREAD_NESTED;
        return false;
    }
    return size <= PTRDIFF_MAX && sample_is_due(t, size);
}

/**
 * To be called after the real function, with the result of cold_begin() in `due`. Counts the object at `p` for its call
 * site; NULL: counts a failed request. If `due`, records the sample, and returns it for the probes; else returns zeros.
 */
static inline struct sample_allocated cold_end(struct thread *t, const struct walk_start *start, bool due,
                                               void *p, size_t size)
{
    sites_allocated(start, p, size);
    if (unlikely(!p))
        process_count_loss(LEDGER_FAILED_REQUESTS);
    else if (due)
        return sample_allocated(t, start, p, size);
    return (struct sample_allocated){0};
}

#endif
