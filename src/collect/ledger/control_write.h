/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_CONTROL_WRITE_H
#define COLLECT_CONTROL_WRITE_H

/* Writes the control page of a running process, the only data of a target that the tool writes. */

#include <stdint.h>

#include "base/error.h"
#include "collect/ledger/ledger_dir.h"

/** Opens the control file beside this ledger for reading and writing. Returns a descriptor, or -errno with a
 * line. */
int control_open(const struct ledger_entry *ledger, struct error *e);
/** Writes the line for a failed operation on it. Returns -code. */
int control_failed(const struct ledger_entry *ledger, int code, struct error *e);
/**
 * Changes the control word beside this ledger: clears the bits `clear`, then sets the bits `set`, under a
 * lock, so that two writers do not undo each other's change. *now (may be NULL): the new word. Returns 0, or
 * -errno with a line.
 */
int control_change(const struct ledger_entry *ledger, uint64_t clear, uint64_t set, uint64_t *now,
                   struct error *e);

#endif
