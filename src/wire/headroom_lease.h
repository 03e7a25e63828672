/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WIRE_HEADROOM_LEASE_H
#define WIRE_HEADROOM_LEASE_H

/*
 * Whether rings or sums may take more memory now. The surroundings are checked once for each MiB, and after a refusal
 * only at every 1,024th request: so a program does not pay for a check at each event when its file system is full.
 *
 * Runs in: target, cold paths. Threads: any; two at once may take a little more than was approved.
 */

#include "base/sigsafe/atomic.h"
#include "wire/headroom.h"

#define HEADROOM_LEASE_BYTES UINT64_C(1 << 20)
#define HEADROOM_REFUSALS    1024u

struct headroom_lease {
    uint64_t approved; /* bytes that may be taken without another check */
    uint64_t taken;    /* all bytes that were taken */
    uint32_t refused;  /* requests since the last check, if that failed */
};

/** Returns whether `bytes` may be taken, and counts them as taken then. `dir`: the folder of the ledger. */
static inline bool headroom_lease_take(struct headroom_lease *l, const char *dir, uint64_t bytes)
{
    const uint32_t since = load_relaxed(&l->refused);
    if (since) {
        store_relaxed(&l->refused, (since + 1) % HEADROOM_REFUSALS);
        return false;
    }
    uint64_t left = load_relaxed(&l->approved);
    if (left < bytes) {
        left = bytes > HEADROOM_LEASE_BYTES ? bytes : HEADROOM_LEASE_BYTES;
        if (headroom_check(dir, load_relaxed(&l->taken), left)) {
            left = bytes;
            if (headroom_check(dir, load_relaxed(&l->taken), left)) {
                store_relaxed(&l->refused, 1);
                return false;
            }
        }
    }
    store_relaxed(&l->approved, left - bytes);
    atomic_add64(&l->taken, bytes);
    return true;
}

#endif
