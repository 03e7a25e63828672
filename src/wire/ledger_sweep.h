/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WIRE_LEDGER_SWEEP_H
#define WIRE_LEDGER_SWEEP_H

/*
 * Removes ledgers that no recorder has collected. If no recorder owns the directory, an agent that makes a ledger first
 * removes other ledgers there whose process ended more than LEDGER_RETENTION_SECONDS ago. So a service that starts once
 * a minute does not fill its tmpfs. If the tmpfs is nearly full already, the oldest left-over ledgers are removed
 * sooner, because a running process matters more than an ended one.
 *
 * The time at which a process ended is not always known. The first agent that finds the process gone marks its ledger:
 * it sets the modification time to now and the access time to 0. Reading a marked ledger may reset the access time, and
 * so prolong the ledger's life.
 *
 * In a large directory the agents sweep once a minute, not at each start of a process.
 *
 * Runs in: target, before its ledger is made; only one thread at a time.
 * Invariant: never removes a file that a process maps, even if that process is in another pid namespace.
 */

#include "base/sigsafe/compiler.h"

#define LEDGER_RETENTION_SECONDS (7l * 24 * 3600)

/** Removes ledgers whose process ended more than LEDGER_RETENTION_SECONDS ago from the open directory `dir`. */
ONE_COPY void ledger_sweep(long dir);
/** Removes left-over ledgers in `dir`, the oldest first, until the file system of `path` has enough room
 * again. */
ONE_COPY void ledger_sweep_for_room(long dir, const char *path);

#endif
