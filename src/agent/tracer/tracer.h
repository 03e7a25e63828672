/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_TRACER_H
#define AGENT_TRACER_H

/*
 * The event tracer (LEDGER_WITH_TRACE): writes each call of the malloc family into the rings of the process
 * (ring/ring_write.h), which lie beside the ledger. The beginning of an object's life is written after the real
 * function has allocated it, the end before the real function frees it: two lives of one address never overlap.
 *
 * The hot functions take the place of the real ones in next_hot (agent/hooks/next.h). The cold halves of hooks call the
 * real functions, and tell the tracer through sites_link.h.
 *
 * Runs in: target. Threads: any, signal handlers included; no lock.
 * Owns: the mapping of the rings, until the process ends.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/walk.h"

/** Not 0: the process traces. */
extern uint32_t tracer_on __attribute__((visibility("hidden")));

/** Finds the real functions of libc that make children. */
void tracer_find_next(void);
/** Starts tracing. Called once, when the allocator is known. */
void tracer_begin(void);
/** Makes the rings for a new ledger. Called by the thread that makes it. */
void tracer_begin_ledger(void);

/** Forgets the kernel's number of the calling thread, which is new, or is in a new fork child. */
void tracer_begin_thread(void);
/** Before libc's fork(), in the parent: notes what the child needs if a signal handler forks amid a cold function. */
void tracer_before_fork(void);

/** The events of operators of C++. `site`: the return address of the call. tracer_book() returns `p`. */
void *tracer_book(uintptr_t site, void *p, size_t size);
void tracer_release(uintptr_t site, const void *p);
/** Call this when a module may have been unloaded: another module can be loaded at its addresses. */
void tracer_forget_sites(void);

/** The events of a cold half: after the real function, or before it. `p` NULL: the request failed. */
void tracer_allocated(const struct walk_start *from, const void *p, size_t size);
void tracer_released(const struct walk_start *from, const void *p);
void tracer_realloc_begins(const struct walk_start *from, const void *old);
void tracer_realloc_ends(const struct walk_start *from, const void *p, size_t size);

#endif
