/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TAG_CALL_DETAILS_H
#define TAG_CALL_DETAILS_H

/* Records the stacks and the durations of calls, for tags for which a rule of `allium set` requests this.
 *
 * Runs in: target, cold paths. Threads: any, signal handlers included; no lock.
 * Needs: tag_ledger_open() has returned true. */

#include <stddef.h>
#include <stdint.h>

#include "unwind/walk.h"

/** Counts a call of the account by its stack, which is walked from `start`. `bytes`: the bytes that were requested. */
void call_details_stack(uint32_t account, size_t bytes, const struct walk_start *start);
/**
 * Starts to time a call that the stack frame at the address `frame` makes. call_details_end() follows with the same
 * `frame`, unless longjmp() or an exception leaves the call.
 */
void call_details_begin(uint32_t account, uintptr_t frame);
/**
 * Ends the timing of the call that `frame` makes, and returns the duration in nanoseconds. UINT64_MAX: the call that
 * was begun with this `frame` is of another account, or its record was replaced.
 */
uint64_t call_details_end(uint32_t account, uintptr_t frame);
/** Adds a duration, in nanoseconds, to the account. */
void call_details_time(uint32_t account, uint64_t took_ns);
/** Called in a fork child: forgets all stacks and timed calls, because the child's ledger is empty. */
void call_details_reset(void);

#endif
