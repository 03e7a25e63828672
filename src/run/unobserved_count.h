/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUN_UNOBSERVED_COUNT_H
#define RUN_UNOBSERVED_COUNT_H

/*
 * Counts, by program and reason, the processes that a recorder knows of and could not observe: those that
 * agents started without the agent, and those whose ledgers the recorder cannot read.
 */

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "collect/ledger/ledger_scan.h"
#include "collect/ledger/unobserved_read.h"
#include "store/recording.h"

struct unobserved_count;

/** Never returns NULL. */
struct unobserved_count *unobserved_count_new(void);
void unobserved_count_free(struct unobserved_count *u);
/** Counts a process that a search has found, once. */
void unobserved_count_add_mark(struct unobserved_count *u, const struct ledger_mark *mark);
/** Counts a process of `program` that the recorder found itself. Copies the name. */
void unobserved_count_add(struct unobserved_count *u, enum preload_check_result why, const char *program);
/** Reads the notes of agents in the directory of ledgers, and stores the new ones. Returns 0, or the
 * recording's error. */
int unobserved_count_store(struct unobserved_count *u, const char *dir, struct recording *recording,
                           struct error *e);

#endif
