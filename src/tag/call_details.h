/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TAG_CALL_DETAILS_H
#define TAG_CALL_DETAILS_H

/*
 * What is kept of calls of a tag of which more is asked than to count: their stacks, and how long they took.
 *
 * Runs in: target, cold paths. Threads: any, signal handlers included; no lock.
 * Needs: tag_ledger_open() said true.
 */

#include <stddef.h>
#include <stdint.h>

#include "unwind/walk.h"

/** A call of that account from there, for so many bytes. */
void call_details_stack(uint32_t account, size_t bytes, const struct walk_start *start);
/** A call begins in that stack frame; call_details_end() must follow from the same one, if it comes back. */
void call_details_begin(uint32_t account, uintptr_t frame);
/** The call that began there of this account is done: its time is booked. Nothing, if none did. */
void call_details_end(uint32_t account, uintptr_t frame);
/** A time of that account. */
void call_details_time(uint32_t account, uint64_t took_ns);
/** In a fork child: begins with nothing. */
void call_details_reset(void);

#endif
