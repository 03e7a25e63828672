/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_TRACER_PUT_H
#define AGENT_TRACER_PUT_H

/*
 * Puts events into the rings, for the hooks of tracer_general.h and tracer_untimed.h.
 *
 * Runs in: target. Threads: any, signal handlers included; no lock.
 */

#include <stdbool.h>
#include <stdint.h>

#include "agent/thread_state.h"
#include "ring/sequence_x86_64.h"
#include "wire/event_schema.h"

/** Puts an event of a class with the fields a, b and site; without b; without site, of `words` words (3 or 4). */
void tracer_put_pair(enum event_id id, uint64_t a, uint64_t b, uintptr_t site);
void tracer_put_one(enum event_id id, uint64_t a, uintptr_t site);
void tracer_put_bare(enum event_id id, uint64_t a, uint64_t b, uint32_t words);

/** Counts an event that is not put, as the user's filter excludes it. */
void tracer_count_filtered(void);

/** Counts an event that is lost because it has no place in the rings. */
void tracer_count_lost(void);

/** Returns whether there are rings to which the thread may write until tracer_end_cold(). If not, counts an event. */
bool tracer_begin_cold(struct thread *t, uint8_t *outside);
/** Appends an event of `words` words, unless tracing is off. The first two are for its time, and ring_what(). */
void tracer_append_cold(uint64_t *event, uint32_t words);
/** Unless that was done: adds a call and its module to the ledger, and writes an event of the module. */
void tracer_see_site(uintptr_t site);
void tracer_end_cold(struct thread *t, uint8_t outside);

/** Puts an event that a sequence has not written. `before`: the result of that sequence. `what`: ring_what(). */
void tracer_put_cold(enum sequence_result before, uint64_t what, uint64_t a, uint64_t b, uintptr_t site);

/** Returns whether the user has switched events of the allocator off. The ledger is open. */
bool tracer_is_off(void);
/** Returns whether the user has switched all events off. */
bool tracer_is_all_off(void);

#endif
