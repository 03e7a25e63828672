/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_CONTROL_EVENTS_H
#define COLLECT_CONTROL_EVENTS_H

/* Switches the programs' own events in a running process, by its control page. */

#include <stdbool.h>

#include "base/error.h"
#include "collect/ledger/ledger_dir.h"
#include "wire/control_page.h"

/** Returns NULL if the list is one (wire/event_list.h); else what is wrong with it, in a few words. */
const char *event_list_mistake(const char *list);
/** Returns whether the list has events of the agent. */
bool event_list_has_agent(const char *list);
/** Returns whether the list has the events at the beginning of calls. */
bool event_list_has_begin(const char *list);
/** Returns whether the pattern of a list, with * and ?, matches the name. */
bool event_list_matches(const char *pattern, const char *name);
/** Puts the list in force in the process of this ledger. "": no event is on. Returns 0, or -errno with a line. */
int control_set_events(const struct ledger_entry *ledger, const char *list, struct error *e);
/** Stores the list, and puts it in force only if `on`; else no event is on. Returns 0, or -errno with a line. */
int control_put_events(const struct ledger_entry *ledger, const char *list, bool on, struct error *e);
/** Reads the list that was stored last, "" if there is none, and whether it is in force. Returns 0, or -errno with a
 * line. */
int control_get_events(const struct ledger_entry *ledger, char list[static LEDGER_EVENT_LIST_BYTES], bool *on,
                       struct error *e);

#endif
