/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_RULES_NOTE_H
#define CLI_RULES_NOTE_H

/*
 * What `allium set` has asked for of a process's tags and call sites, and still holds, in a line.
 *
 * Runs in: the tool.
 */

#include <stdbool.h>

#include "base/buf.h"
#include "collect/ledger/ledger_dir.h"

/**
 * Appends "tags off but for 3; stacks of 12 tags; of modules loaded later: stacks where class:cache", or nothing.
 * `whole`: however long it gets; else some queries, and long ones cut. `tags`, `sites`: which it has.
 */
void rules_note(const struct ledger_entry *entry, bool tags, bool sites, bool whole, struct buf *note);

#endif
