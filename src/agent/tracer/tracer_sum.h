/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_TRACER_SUM_H
#define AGENT_TRACER_SUM_H

/*
 * `allium trace --sum` of the agent's events: calls are added up by key in a table beside the ledger (sum/sum_table.h),
 * and no event is written. The hooks are those of the tracer, with functions of their own in next_hot.
 *
 * The variable ALLIUM_SITES has ",sum=EVENTS:VALUES:KEYS": a bit for each number of an event (wire/event_schema.h), in
 * decimal; `s` if their sizes are added up, else `-`; and a letter for each field of the key, in order: `a` the address
 * of the call, `s` its size, `t` the thread, `c` the CPU, `-` what the tool knows by itself.
 *
 * Runs in: target. Threads: any, signal handlers included; no lock.
 * Owns: the mapping of the table, until the image ends.
 */

#include <stdbool.h>
#include <stdint.h>

#include "wire/event_schema.h"

/** Returns whether the user asks for sums. If so, reads the options and installs the hooks. */
bool tracer_sum_begin(void);
extern bool tracer_sum_on __attribute__((visibility("hidden")));

/** Makes the table for a new ledger. Called by the thread that makes it. */
void tracer_sum_begin_ledger(void);
/** Before libc's fork(), in the parent: notes the table if a signal interrupted the thread while it used the table. */
void tracer_sum_before_fork(void);
/** Before seccomp: takes the memory that may be needed later. */
void tracer_sum_seal(void);

/** Called before dlclose(): until dlclose() returns, events in modules that may be unloaded take the slow path. */
void tracer_sum_forget_unloadable(void);

/** Counts an event. `site`: the return address. */
void tracer_sum_add(enum event_id id, uint64_t size, uintptr_t site);

#endif
