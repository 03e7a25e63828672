/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TAG_USER_SUMS_H
#define TAG_USER_SUMS_H

/*
 * `allium trace --sum` of the program's own events: they are added up by key in a table beside the ledger
 * (sum/sum_table.h), and go into no ring.
 *
 * An item "=FIELD;BY;BY..." in ALLIUM_EVENTS asks for it: FIELD, which may be missing, is the field whose values are
 * added up, and each BY a field of the key: of the event, or `thread` or `cpu`.
 *
 * Runs in: target. Threads: any, signal handlers included; no lock.
 * Owns: the mapping of the table, until the image ends.
 */

#include <stdbool.h>
#include <stdint.h>

#include "allium/event.h"

/** Looks for the item in the list, a text that stays. */
void user_sums_begin_library(const char *list);
/** Returns whether events are added up. */
bool user_sums_are_on(void);
/** Makes the table of this image. Called by the thread that makes its rings or what takes their place. */
bool user_sums_make(void);
/** Counts an event that cannot be written, or came before there was a table. */
void user_sums_lose(uint64_t events);
/** Counts an event. `number`: of its kind in this image (event_classes.h). */
void user_sums_add(const struct allium_event *event, uint16_t number, const uint64_t *words, uint32_t thread);
/** Before libc's fork(), in the parent: notes the table if the thread was interrupted while it used it. */
void user_sums_before_fork(unsigned part);
/** Before seccomp: takes the room that may be needed later. */
void user_sums_seal(void);

#endif
