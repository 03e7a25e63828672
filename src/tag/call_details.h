/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TAG_CALL_DETAILS_H
#define TAG_CALL_DETAILS_H

/* Records the stacks and the durations of calls, for tags of which a rule asks more than counting.
 *
 * Runs in: target, cold paths. Threads: any, signal handlers included; no lock.
 * Needs: tag_ledger_open() has returned true. */

#include <stddef.h>
#include <stdint.h>

#include "unwind/walk.h"

/** Counts a call of the account by its stack, which is walked from `start`; the call asked for `bytes`. */
void call_details_stack(uint32_t account, size_t bytes, const struct walk_start *start);
/**
 * A timed call begins in this stack frame. call_details_end() follows from the same frame, unless the call is left by
 * a jump.
 */
void call_details_begin(uint32_t account, uintptr_t frame);
/**
 * The call that began in this frame has returned: adds its duration to the account. Nothing if no call of the account
 * began there.
 */
void call_details_end(uint32_t account, uintptr_t frame);
/** Adds a duration to the account. */
void call_details_time(uint32_t account, uint64_t took_ns);
/** Forgets everything: in a fork child, whose ledger is empty. */
void call_details_reset(void);

#endif
