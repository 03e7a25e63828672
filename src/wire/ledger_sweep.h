/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WIRE_LEDGER_SWEEP_H
#define WIRE_LEDGER_SWEEP_H

/*
 * Removes left-over ledgers (and control pages) of ended processes, which no recorder has collected. Before a process
 * makes a ledger in a directory that is not a recorder's, it removes the other ledgers there whose process was found to
 * have ended more than LEDGER_RETENTION_SECONDS ago. So a service that starts once a minute does not fill its tmpfs. If
 * the tmpfs is nearly full, the oldest left-over ledgers are removed sooner, because a running process matters more
 * than an ended one.
 *
 * The time at which a process ended is not always known. The first sweep that finds the process gone marks its ledger:
 * it sets the file's modification time to now and its access time to 0. If a marked ledger is read, the kernel may set
 * the access time; then the next sweep marks the ledger anew, and the ledger is kept longer.
 *
 * A large directory is swept at most once a minute, not at each start of a process, and only a part of it at a time.
 *
 * Runs in: target, before its ledger is made; only one thread at a time.
 * Invariant: never removes a file that a process maps, even if that process is in another pid namespace.
 */

#include "base/sigsafe/compiler.h"

#define LEDGER_RETENTION_SECONDS (7l * 24 * 3600)

/** Marks left-over ledgers in the open directory `dir`; removes those whose mark is LEDGER_RETENTION_SECONDS old. */
ONE_COPY void ledger_sweep(long dir);
/**
 * Removes left-over ledgers from the open directory `dir` until the file system of the path `path` has enough room
 * (headroom_is_short()). Makes several passes: the first one removes the oldest ledgers, each further one younger ones.
 * In a large directory, each pass examines a part of the files only.
 */
ONE_COPY void ledger_sweep_for_room(long dir, const char *path);

#endif
