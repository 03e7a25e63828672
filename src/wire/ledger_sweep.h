/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WIRE_LEDGER_SWEEP_H
#define WIRE_LEDGER_SWEEP_H

/*
 * Ledgers that nobody fetched. Where no recorder takes them away, an agent that makes one first removes those beside it
 * whose process has been gone for LEDGER_KEPT_SECONDS: a service that starts once a minute does not fill its tmpfs.
 * Where that is nearly full already, those that were left first go sooner: who runs comes before who ran.
 *
 * When a process ended is not known of all: whoever first finds it gone sets the ledger's times, that of modification
 * to now and that of access to 0, as a mark. Who reads a marked one may so prolong its time.
 *
 * Where there are many, they are gone through once a minute, and not by each process that begins.
 *
 * Runs in: target, before its ledger is made; only one thread at a time.
 * Invariant: what a process maps stays, whatever that is called in whatever namespace.
 */

#include "base/sigsafe/compiler.h"

#define LEDGER_KEPT_SECONDS (7l * 24 * 3600)

/** `dir`: the directory, opened. */
ONE_COPY void ledger_sweep(long dir);
/** Removes left ledgers in `dir`, the oldest first, until the file system of `path` is not short of room any more. */
ONE_COPY void ledger_sweep_for_room(long dir, const char *path);

#endif
