/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_RULES_NOTE_H
#define CLI_RULES_NOTE_H

/* Describes in one line the rules of `allium set` that are in force in a process. */

#include <stdbool.h>

#include "base/buf.h"
#include "collect/ledger/ledger_dir.h"

/**
 * Appends "tags off but for 3; stacks of 12 tags; of modules loaded later: stacks where class:cache", or
 * nothing. `whole`: the line may be long; otherwise some queries are shown, and long ones cut. `tags`,
 * `sites`: the kinds of account that the process has.
 */
void rules_note(const struct ledger_entry *entry, bool tags, bool sites, bool whole, struct buf *note);

#endif
