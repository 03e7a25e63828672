/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUN_STRAY_SEARCH_H
#define RUN_STRAY_SEARCH_H

/*
 * When to look through all processes for ledgers that lie out of sight: no event tells of them. The search takes a
 * small share of one processor, and of time. While it finds nothing that share shrinks.
 *
 * Runs in: the tool. Threads: one.
 */

#include <stdint.h>

#include "collect/ledger/ledger_dir.h"

struct stray_search {
    uint64_t next;  /* CLOCK_MONOTONIC */
    uint64_t share; /* the next search may begin after this many times the cost of the last one; 0 at first */
};

/** Appends to `list` what the recorder of `dir` has out of sight. */
void stray_search_run(struct stray_search *s, const char *dir, struct ledger_list *list);

#endif
