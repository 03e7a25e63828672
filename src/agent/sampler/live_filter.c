/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/sampler/live_filter.h"

#include <sys/mman.h>

#include "agent/process.h"
#include "base/sigsafe/syscall.h"
#include "wire/headroom.h"

#define ALL_PIECES (~0u)

uint8_t live_filter_counts[LIVE_FILTER_BYTES] __attribute__((aligned(4096)));
uint32_t live_filter_writable = ALL_PIECES;

void live_filter_begin(void)
{
    if (!sys_failed(sys_call(SYS_mprotect, live_filter_counts, sizeof(live_filter_counts), PROT_READ)))
        store_relaxed(&live_filter_writable, 0);
}

/* `pieces`: the bits of adjacent pieces. If two threads make the same piece writable at once, this does no harm. */
static bool make_writable(uint32_t pieces)
{
    uint64_t offset = (uint64_t)__builtin_ctz(pieces) * LIVE_FILTER_PIECE_BYTES;
    uint64_t bytes = (uint64_t)__builtin_popcount(pieces) * LIVE_FILTER_PIECE_BYTES;
    /* If the program has called mlockall(2), mprotect() would allocate all of this memory, unless it is unlocked. */
    sys_call(SYS_munlock, live_filter_counts + offset, bytes);
    if (sys_failed(sys_call(SYS_mprotect, live_filter_counts + offset, bytes, PROT_READ | PROT_WRITE)))
        return false;
    __atomic_fetch_or(&live_filter_writable, pieces, __ATOMIC_RELEASE);
    return true;
}

bool live_filter_open_cold(uint32_t piece)
{
    return ledger_may_call(&process.ledger) && headroom_in_limits(0, LIVE_FILTER_PIECE_BYTES) &&
           make_writable(1u << piece);
}

bool live_filter_open_all(void)
{
    return load_relaxed(&live_filter_writable) == ALL_PIECES ||
           (ledger_may_call(&process.ledger) && make_writable(ALL_PIECES));
}
