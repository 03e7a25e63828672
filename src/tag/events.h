/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TAG_EVENTS_H
#define TAG_EVENTS_H

/*
 * The slow paths of <allium/event.h>: which events are on, as the control page says (wire/control_page.h).
 *
 * Runs in: target. Threads: any, signal handlers included; no lock.
 */

/**
 * Called when the settings of the process are read: puts the list of events into its first control page. `list`: the
 * value of ALLIUM_EVENTS.
 */
void events_begin_library(const char *list);
/** Called when the ledger of an image is there. The agent made its control page without the list. */
void events_begin_ledger(void);

#endif
