/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_TRACER_RINGS_H
#define AGENT_TRACER_RINGS_H

/*
 * The rings of the process image, their file and their memory.
 *
 * Runs in: target. Threads: any, signal handlers included; no lock.
 * Owns: the mappings, until the process ends.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ring/ring_shared.h"
#include "ring/ring_write.h"
#include "wire/ledger.h"

/* All that the hot functions read. These pages are zero in a fork child. */
#define TRACER_SITES_BITS 14
struct tracer_hot {
    struct sequence_rings rings; /* as in tracer_ring; `area` 0: there are none for sequences */
    uint64_t early_lost;         /* events before there were rings */
    uint64_t has_sites;          /* 1: some of `sites` are not 0 */
    ptrdiff_t untimed_area;      /* as rings.area, for the hooks of tracer_untimed.c */
    char unused[LEDGER_PAGE_BYTES - sizeof(struct sequence_rings) - 3 * sizeof(uint64_t)];
    /* Return addresses whose modules the ledger has, each at its place. */
    uintptr_t sites[1u << TRACER_SITES_BITS];
};
_Static_assert(sizeof(struct tracer_hot) % LEDGER_PAGE_BYTES == 0, "nothing else is zero in a fork child");
extern struct tracer_hot tracer_hot __attribute__((visibility("hidden")));

/** Returns the place of a return address in tracer_hot.sites: its low bits, so that neighbours share cache lines. */
static inline uintptr_t *tracer_site_place(uintptr_t site)
{
    return &tracer_hot.sites[site & ((1u << TRACER_SITES_BITS) - 1)];
}

/* For the cold functions. In a fork child it describes the parent's rings, until the child has made its own. */
extern struct ring tracer_ring __attribute__((visibility("hidden")));

/*
 * The kernel's number of the thread (0: not known yet), and one bit. With the bit, the thread writes into the shared
 * ring, by atomic operations: the kernel does not abort its sequences.
 */
#define TRACER_UNREGISTERED (1u << 31)
extern __thread uint32_t tracer_thread __attribute__((tls_model("initial-exec"), visibility("hidden")));

/** Called once, before the first event. Returns false if the process cannot have rings. */
bool tracer_rings_begin(void);
/** Returns whether this process has rings. */
bool tracer_rings_made(void);
/** Returns the offset of libc's struct rseq from the thread pointer; 0: libc registers no thread. */
ptrdiff_t tracer_rings_area(void);
/** Sets tracer_thread, if a system call may be made. Returns whether it was not known before. */
bool tracer_know_thread(void);

#endif
