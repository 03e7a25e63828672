/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TARGET_SHARDS_H
#define TARGET_SHARDS_H

/*
 * Gives each thread a shard of the counters of all accounts, to which no other thread writes.
 *
 * Runs in: target, cold paths. Threads: any.
 * Invariant: no shard but the last one has two owners that are alive.
 */

#include <stdint.h>

#include "wire/ledger.h"

/** The shard of all threads that have none of their own. They write to it by atomic additions. */
#define SHARDS_SHARED (LEDGER_ACCOUNT_SHARDS - 1)

/**
 * Returns the shard of the calling thread from now on, for the accounts of the process `process`. Threads do not
 * report their end; shards of threads that have ended are found here, by system calls. Under seccomp: SHARDS_SHARED.
 */
uint32_t shards_claim(int32_t process);
/** Returns how many shards, from the first one on, have ever had an owner. */
uint32_t shards_used(void);

#endif
