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

/** The shard that is shared by all threads without one of their own. They add to it atomically. */
#define SHARDS_SHARED (LEDGER_ACCOUNT_SHARDS - 1)

/**
 * Returns a shard, which belongs to the calling thread from now on. Threads do not report their end: this function
 * looks for owners that have ended, by system calls. Returns SHARDS_SHARED if no shard is free, under seccomp, and in a
 * vfork child, whose process id is not `process`.
 */
uint32_t shards_claim(int32_t process);
/** Returns the number of shards, counted from shard 0, that have ever had an owner. */
uint32_t shards_used(void);

#endif
