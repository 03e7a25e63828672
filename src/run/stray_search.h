/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUN_STRAY_SEARCH_H
#define RUN_STRAY_SEARCH_H

/*
 * Searches all processes, again and again, for ledgers and marks that are not in the recorder's directory: no event
 * tells of them. The searches take a small share of one processor; while they find nothing, the share shrinks. A search
 * runs in a thread of its own, because it waits for a process that does not answer.
 *
 * Runs in: the tool. Threads: the functions are for the recorder's thread. Owns: its own thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "collect/ledger/ledger_scan.h"

struct stray_search;

/** Never returns NULL. `dir` is the recorder's directory, and must stay valid. */
struct stray_search *stray_search_new(const char *dir);
/** Waits for a search in progress. */
void stray_search_free(struct stray_search *s);
/** Begins a search if one is due; does not wait. Returns true if a search has ended; the caller owns `found` then. */
bool stray_search_step(struct stray_search *s, uint64_t now, struct ledger_strays *found);
/** Makes a whole search and waits for it. `found` also has the results of an earlier search. */
void stray_search_finish(struct stray_search *s, struct ledger_strays *found);
/** Returns when the next step is due (CLOCK_MONOTONIC). */
uint64_t stray_search_due(struct stray_search *s, uint64_t now);

#endif
