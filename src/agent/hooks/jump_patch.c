/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/hooks/jump_patch.h"

#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "agent/hooks/hooks.h"
#include "agent/hooks/next.h"
#include "base/sigsafe/atomic.h"
#include "base/sigsafe/syscall.h"

#define PAGE 4096u

static bool is_applied;

#if defined(__x86_64__)

/* The indirect jump `jmp *disp32(%rip)` is ff 25 and the distance of the pointer; the direct jump `jmp rel32` is e9 and
 * the distance of the target. A distance has 4 bytes, and is counted from the end of the instruction. */
#define INDIRECT        0x25ffu
#define INDIRECT_LENGTH 6
#define DIRECT          0xe9u
#define DIRECT_LENGTH   5

extern uint8_t __start_allium_hot[] __attribute__((visibility("hidden")));
extern uint8_t __stop_allium_hot[] __attribute__((visibility("hidden")));

static bool within(uintptr_t slot, const void *from, const void *end)
{
    return slot >= (uintptr_t)from && slot < (uintptr_t)end && slot % sizeof(void *) == 0;
}

/*
 * Returns the address of the pointer that the instruction at `at` jumps through, if it is in next_hot or next_entries;
 * else NULL. Also NULL for next_entries.realloc if it is not our hook: tag_bridge.c may have to change this pointer
 * later, because without our hook there is no cold half into which the live filter could send each call.
 */
static const uintptr_t *slot_of(const uint8_t *at)
{
    int32_t distance;
    __builtin_memcpy(&distance, at + 2, sizeof(distance));
    uintptr_t slot = (uintptr_t)at + INDIRECT_LENGTH + (uintptr_t)(intptr_t)distance;
    bool ours = at[0] == (INDIRECT & 0xff) && at[1] == INDIRECT >> 8 &&
                (within(slot, &next_hot, &next_hot + 1) || within(slot, &next_entries, &next_entries + 1));
    if (slot == (uintptr_t)&next_entries.realloc && !hooks_count_realloc())
        return NULL;
    return ours ? (const uintptr_t *)slot : NULL;
}

static void rewrite(uint8_t *at, uintptr_t target)
{
    int64_t distance = (int64_t)(target - ((uintptr_t)at + DIRECT_LENGTH));
    if (!target || distance != (int32_t)distance)
        return;
    uint64_t word;
    __builtin_memcpy(&word, at, sizeof(word));
    word = (word & ~0xffffffffffull) | DIRECT | (uint64_t)(uint32_t)distance << 8;
    __atomic_store_n((uint64_t *)at, word,
                     __ATOMIC_RELAXED); /* one store: a signal handler never runs half of the new jump */
}

void jump_patch_apply(void)
{
    uintptr_t start = (uintptr_t)__start_allium_hot & ~(uintptr_t)(PAGE - 1);
    uintptr_t bytes = ((uintptr_t)__stop_allium_hot - start + PAGE - 1) & ~(uintptr_t)(PAGE - 1);
    if (!atomic_alone() || sys_call(SYS_prctl, PR_GET_SECCOMP, 0, 0, 0, 0) != 0 ||
        sys_failed(sys_call(SYS_mprotect, start, bytes, PROT_READ | PROT_WRITE | PROT_EXEC)))
        return;
    for (uint8_t *at = __start_allium_hot; at + sizeof(uint64_t) <= __stop_allium_hot; at++) {
        const uintptr_t *slot = slot_of(at);
        if (slot)
            rewrite(at, *slot);
    }
    sys_call(SYS_mprotect, start, bytes, PROT_READ | PROT_EXEC);
    is_applied = true;
}

#else

void jump_patch_apply(void)
{
}

#endif

bool jump_patch_is_applied(void)
{
    return is_applied;
}
