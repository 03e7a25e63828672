/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TAG_EVENTS_H
#define TAG_EVENTS_H

/*
 * The slow paths of <allium/event.h>: which events are on, as the control page says (wire/control_page.h).
 *
 * Runs in: target. Threads: any, signal handlers included; no lock.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sigsafe/compiler.h"
#include "ring/sequence_x86_64.h"

/** Whether the calls of code tags are events, too. */
extern bool events_has_tags __attribute__((visibility("hidden")));
struct allium_event;

/**
 * The long ways of allium_event_put_0() to allium_event_put_3(), and of allium_event_write(). `before`: the result of
 * the short way, which wrote nothing.
 */
ONE_COPY void events_put_cold(struct allium_event *event, enum sequence_result before, uint32_t words,
                              uint64_t a, uint64_t b, uint64_t c);
ONE_COPY void events_write_cold(struct allium_event *event, enum sequence_result before, uint64_t *words,
                                uint32_t n_words, uint32_t cut);

/** Writes the event of a call of a code tag that has returned. `took_ns`: how long it took; UINT64_MAX: not known. */
void events_put_tag_call(uint32_t account, const void *object, size_t bytes, uint64_t took_ns,
                         uintptr_t site);

/**
 * Called when the settings of the process are read: puts the list of events into its first control page. `list`: the
 * value of ALLIUM_EVENTS.
 */
void events_begin_library(const char *list);
/** Called when the ledger of an image is there. The agent made its control page without the list. */
void events_begin_ledger(void);

#endif
