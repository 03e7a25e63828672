/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_CONTROL_WRITE_H
#define COLLECT_CONTROL_WRITE_H

/*
 * The control page of a running process, the one thing of a target that the tool writes.
 *
 * Runs in: the tool.
 */

#include <stdint.h>

#include "base/error.h"
#include "collect/ledger/ledger_dir.h"

/** The file of it beside this ledger, for reading and writing: a descriptor, or -errno with a line. */
int control_open(const struct ledger_entry *ledger, struct error *e);
/** The line for a failed operation on it; -code. */
int control_failed(const struct ledger_entry *ledger, int code, struct error *e);
/**
 * Changes the control word beside this ledger: first the bits of `clear` go, then those of `set` are added. It is done
 * under a lock, so that two of us do not undo each other. *now (may be NULL): the word after it. 0, or -errno with a
 * line.
 */
int control_change(const struct ledger_entry *ledger, uint64_t clear, uint64_t set, uint64_t *now,
                   struct error *e);

#endif
