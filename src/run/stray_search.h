/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUN_STRAY_SEARCH_H
#define RUN_STRAY_SEARCH_H

/*
<<<<<<< HEAD
 * Searches all processes, again and again, for ledgers and marks that are out of the recorder's sight: no event tells
 * of them. A search takes a small share of one processor, and of time; while searches find nothing, that share shrinks.
 * It runs in a thread of its own, because a process that does not answer makes it wait.
 *
 * Runs in: the tool. Threads: the functions are for the recorder's thread. Owns: its own thread.
=======
 * Decides when to search all processes for ledgers without a file name, of which no event tells. The search
 * takes a small share of one processor. While it finds nothing, the share shrinks.
>>>>>>> ee2e257 (all)
 */

#include <stdbool.h>
#include <stdint.h>

#include "collect/ledger/ledger_scan.h"

<<<<<<< HEAD
struct stray_search;

/** Never NULL. `dir` is the recorder's directory, and stays valid. */
struct stray_search *stray_search_new(const char *dir);
/** Waits for a search that runs. */
void stray_search_free(struct stray_search *s);
/** Begins a search if it is time for one, and does not wait. True: one has ended, and `found` is the caller's. */
bool stray_search_step(struct stray_search *s, uint64_t now, struct ledger_strays *found);
/** Makes a whole search, and waits for it; what an earlier one has found is in `found`, too. */
void stray_search_finish(struct stray_search *s, struct ledger_strays *found);
/** When the next step is due (CLOCK_MONOTONIC). */
uint64_t stray_search_due(struct stray_search *s, uint64_t now);
=======
struct stray_search {
    uint64_t next; /* CLOCK_MONOTONIC */
    /* the next search begins at the earliest after so many times the duration of the last one; 0 at first */
    uint64_t share;
};

/** Appends the ledgers without a file name that belong to the recorder of `dir`. */
void stray_search_run(struct stray_search *s, const char *dir, struct ledger_list *list);
>>>>>>> ee2e257 (all)

#endif
