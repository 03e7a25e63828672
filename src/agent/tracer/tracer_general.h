/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_TRACER_GENERAL_H
#define AGENT_TRACER_GENERAL_H

/*
 * The tracer's second set of hooks, which obeys all options (tracer_options.h). It is installed if an option differs
 * from what the fast hooks of tracer.c do.
 *
 * The cold halves of hooks, and operators of C++, call the real functions through `next`, where the tracer has
 * functions of its own. They note which function it was, for the event's class; and with this set, they write the
 * events of the group `begin` next to the real call.
 *
 * Runs in: target. Threads: any, signal handlers included; no lock.
 */

#include <stddef.h>
#include <stdint.h>

#include "agent/hooks/next.h"
#include "unwind/walk.h"
#include "wire/event_schema.h"

/** The allocator's functions, which hot hooks call. tracer_general_note_calls() sets them. */
extern struct next tracer_real __attribute__((visibility("hidden")));

/**
 * Puts functions into `next`, for cold halves, that call the functions of tracer_real and note the event's class.
 * Called once, when the allocator is known.
 */
void tracer_general_note_calls(void);
/** Installs the hooks. Called once, after tracer_general_note_calls(). */
void tracer_general_begin(void);
/** Returns the class of the allocation that a cold half of the thread has just made. */
enum event_id tracer_general_call(void);

/** Write the events of a cold half, as tracer_allocated() and the functions after it do. */
void tracer_general_allocated(const struct walk_start *from, const void *p, size_t size);
void tracer_general_released(const struct walk_start *from, const void *p);
void tracer_general_realloc_begins(const struct walk_start *from, const void *old);
void tracer_general_realloc_ends(const struct walk_start *from, const void *p, size_t size);

/** The operators that the cold halves call: each calls the operator of next_operators, and notes the event's class. */
extern struct next_operators tracer_general_operators __attribute__((visibility("hidden")));

#endif
