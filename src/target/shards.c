/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/shards.h"

#include <errno.h>
#include <stdbool.h>

#include "base/sigsafe/atomic.h"
#include "base/sigsafe/syscall.h"
#include "target/vm_reserve.h"

/*
 * The owner of each shard: the thread id, and above it a number that counts the owners. Threads do not report their
 * end. When a shard is wanted, the kernel is asked whether the owner still runs, so that nothing of ours runs at the
 * end of a thread. A thread with the same id can only be a later one.
 */
static uint64_t owners[SHARDS_SHARED];
static uint32_t used;

static bool has_ended(uint32_t thread)
{
    return sys_call(SYS_tgkill, sys_call(SYS_getpid, 0), thread, 0) == -ESRCH;
}

/*
 * A vfork child takes no shard: its thread id would be found ended while the thread whose memory it shares goes on.
 */
uint32_t shards_claim(int32_t process)
{
    if (!vm_reserve_may_call() || sys_call(SYS_getpid, 0) != process)
        return SHARDS_SHARED;
    uint32_t own = (uint32_t)sys_call(SYS_gettid, 0);
    for (int ask = 0; ask < 2; ask++)
        for (uint32_t i = 0; i < SHARDS_SHARED; i++) {
            uint64_t was = load_relaxed(&owners[i]), next = ((was >> 32) + 1) << 32 | own;
            uint32_t owner = (uint32_t)was;
            if ((!owner || owner == own || (ask && has_ended(owner))) &&
                __atomic_compare_exchange_n(&owners[i], &was, next, false, __ATOMIC_ACQUIRE,
                                            __ATOMIC_RELAXED)) {
                for (uint32_t most = load_relaxed(&used); most <= i;)
                    __atomic_compare_exchange_n(&used, &most, i + 1, false, __ATOMIC_RELAXED,
                                                __ATOMIC_RELAXED);
                return i;
            }
        }
    return SHARDS_SHARED;
}

uint32_t shards_used(void)
{
    return load_relaxed(&used);
}
