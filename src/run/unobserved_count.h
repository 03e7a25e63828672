/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUN_UNOBSERVED_COUNT_H
#define RUN_UNOBSERVED_COUNT_H

/*
 * Processes that a recorder knows of and could not observe, counted by program and reason: those that agents started
 * without themselves, and those whose ledgers it may not read.
 *
 * Runs in: the tool. Threads: one.
 */

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "collect/ledger/ledger_scan.h"
#include "collect/ledger/unobserved_read.h"
#include "store/recording.h"

struct unobserved_count;

/** Never NULL. */
struct unobserved_count *unobserved_count_new(void);
void unobserved_count_free(struct unobserved_count *u);
/** Counts a process that a search has found, once. */
void unobserved_count_add_mark(struct unobserved_count *u, const struct ledger_mark *mark);
/** A process of `program` that the recorder itself knows of; the program's name is copied. */
void unobserved_count_add(struct unobserved_count *u, enum carrier why, const char *program);
/** Takes up what agents have noted in the directory of ledgers, and stores what is new. 0, or the recording's error. */
int unobserved_count_store(struct unobserved_count *u, const char *dir, struct recording *recording,
                           struct error *e);

#endif
