/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/shards.h"

#include <errno.h>
#include <stdbool.h>

#include "base/sigsafe/atomic.h"
#include "base/sigsafe/syscall.h"
#include "target/vm_reserve.h"

/*
 * The owner of each shard: its thread id in the low half (0: none yet), the number of owners so far in the high half.
 * The library does not see that a thread ends, so a thread that wants a shard asks the kernel whether the owner still
 * runs. If the owner's id is the caller's own, the owner has ended, and the kernel has given its id to the caller.
 */
static uint64_t owners[SHARDS_SHARED];
static uint32_t used;

static bool has_ended(uint32_t thread)
{
    return sys_call(SYS_tgkill, sys_call(SYS_getpid, 0), thread, 0) == -ESRCH;
}

/*
 * A vfork child takes no shard. Its thread id would be stored as the owner; after its exec another thread would take
 * the shard as free, while the parent's thread, which shares the memory of the child, still writes to it.
 */
uint32_t shards_claim(int32_t process)
{
    if (!vm_reserve_may_call() || sys_call(SYS_getpid, 0) != process)
        return SHARDS_SHARED;
    uint32_t own = (uint32_t)sys_call(SYS_gettid, 0);
    for (int check = 0; check < 2; check++)
        for (uint32_t i = 0; i < SHARDS_SHARED; i++) {
            uint64_t was = load_relaxed(&owners[i]), next = ((was >> 32) + 1) << 32 | own;
            uint32_t owner = (uint32_t)was;
            if ((!owner || owner == own || (check && has_ended(owner))) &&
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
