/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TARGET_SHARDS_H
#define TARGET_SHARDS_H

/*
 * Gives each thread a shard, which has counters for each account (of a tag or call site), so that no two threads write
 * to one counter.
 *
 * Runs in: target, cold paths. Threads: any.
 * Invariant: no shard but the last one has two owners that are alive.
 */

#include <stdint.h>

#include "wire/ledger.h"

/** The shard that all threads without a shard of their own share. These threads add to its counters atomically. */
#define SHARDS_SHARED (LEDGER_ACCOUNT_SHARDS - 1)

/**
 * Returns the number of a shard, which belongs to the calling thread from now on. Threads do not report their end: this
 * function finds owners that have ended by system calls. Returns SHARDS_SHARED if no shard is free, under seccomp, and
 * if the process id is not `process`, as in a vfork child.
 */
uint32_t shards_claim(int32_t process);
/** Returns 1 + the highest number of a shard that has ever had an owner; 0: none has. SHARDS_SHARED is not counted. */
uint32_t shards_used(void);

#endif
