/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TAG_CALL_DETAILS_H
#define TAG_CALL_DETAILS_H

/* Records the stacks and the durations of calls, for tags whose rule requests this (`allium set`).
 *
 * Runs in: target, cold paths. Threads: any, signal handlers included; no lock.
 * Needs: tag_ledger_open() has returned true. */

#include <stddef.h>
#include <stdint.h>

#include "unwind/walk.h"

/** Counts a call of the account by its stack, which is walked from `start`. `bytes`: the size of the allocation. */
void call_details_stack(uint32_t account, size_t bytes, const struct walk_start *start);
/**
 * Starts to time a call that this stack frame makes. The same frame calls call_details_end(), unless longjmp() or an
 * exception leaves the call.
 */
void call_details_begin(uint32_t account, uintptr_t frame);
/**
 * The call that this frame made has returned: adds its duration to the account. Does nothing if no call of the account
 * began in this frame.
 */
void call_details_end(uint32_t account, uintptr_t frame);
/** Adds a duration to the account. */
void call_details_time(uint32_t account, uint64_t took_ns);
/** Called in a fork child: forgets all stacks and calls, because the child's ledger is empty. */
void call_details_reset(void);

#endif
