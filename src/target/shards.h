/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TARGET_SHARDS_H
#define TARGET_SHARDS_H

/*
 * Which thread writes to which shard of all accounts.
 *
 * Runs in: target, cold paths. Threads: any.
 * Invariant: of the shards before the last, none has two owners that live.
 */

#include <stdint.h>

#include "wire/ledger.h"

/** The shard of all threads that have none of their own: they write to it by atomic adds. */
#define SHARDS_SHARED (LEDGER_ACCOUNT_SHARDS - 1)

/**
 * The calling thread's shard from now on, in accounts that are those of `process`. A thread does not say when it ends:
 * those that have ended are found when a shard is wanted, by system calls, which a process under seccomp is spared.
 */
uint32_t shards_claim(int32_t process);
/** Shards from the first on that ever had an owner. */
uint32_t shards_used(void);

#endif
