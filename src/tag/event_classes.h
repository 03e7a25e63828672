/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TAG_EVENT_CLASSES_H
#define TAG_EVENT_CLASSES_H

/*
 * The kinds of events that this process image has written, in the table beside its rings (wire/event_table.h).
 *
 * Runs in: target, cold paths. Threads: any, signal handlers included; no lock.
 * Owns: the mapping of the table, until the image ends.
 */

#include <stdbool.h>
#include <stdint.h>

#include "allium/event.h"
#include "wire/event_table.h"

/** Makes the table of this image. Called by the thread that makes its rings. */
bool event_classes_begin(void);
/**
 * Returns the number of the event; 0: there is no room for its description, or it is damaged. Keeps it in event->known:
 * from bit 0 on the number, from bit 16 on event_rings_area(), from bit 32 on the generation of the process.
 */
uint16_t event_classes_number(struct allium_event *event);
/** Asks the tool for a snapshot. The rings are open. */
void event_classes_ask(const char reason[static EVENT_TABLE_REASON_BYTES]);

#endif
