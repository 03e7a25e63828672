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
#include "store/recording.h"

struct unseen;

/** Never NULL. */
struct unseen *unseen_new(void);
void unseen_free(struct unseen *u);
/** The ledger of this image is there, and not for us. It is counted once. */
void unseen_add_hidden(struct unseen *u, pid_t pid, uint64_t image_id);
/** Takes up what agents have noted in the directory of ledgers, and stores what is new. 0, or the recording's error. */
int unseen_store(struct unseen *u, const char *dir, struct recording *recording, struct error *e);

#endif
