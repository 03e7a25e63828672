/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUN_RING_RATE_H
#define RUN_RING_RATE_H

/*
 * The highest rate at which a ring was written, over spans of RING_RATE_NS; and how long its reader may sleep.
 *
 * Runs in: the tool. Threads: that of the reader. Pure.
 */

#include <stdint.h>

#define RING_RATE_NS 50000000u

struct ring_rate {
    uint64_t since_ns, bytes; /* since when, how much was read */
};

#define RING_WAIT_LEAST_NS      1000000u
#define RING_WAIT_MOST_NS       50000000u
#define RING_SCAN_NS            10000000u /* between two looks for new rings */
#define RING_BURST_BYTES_PER_MS 400000u   /* if an idle ring is written this fast at once, no event is lost */

/**
 * Returns how long the reader may sleep now, in ns. `last_ns`: how long it slept before; 0: there were events since.
 * `ring_bytes`: the size of a ring; 0: there is none yet.
 */
static inline uint64_t ring_rate_wait_ns(uint64_t last_ns, uint64_t ring_bytes)
{
    const uint64_t fills_ns = ring_bytes ? ring_bytes / RING_BURST_BYTES_PER_MS * 1000000 : RING_SCAN_NS;
    const uint64_t most_ns = fills_ns < RING_WAIT_MOST_NS ? fills_ns : RING_WAIT_MOST_NS;
    const uint64_t wait_ns = 2 * last_ns < most_ns ? 2 * last_ns : most_ns;
    return wait_ns > RING_WAIT_LEAST_NS ? wait_ns : RING_WAIT_LEAST_NS;
}

/** Raises *highest to the rate of `bytes` in `ns`. */
static inline void ring_rate_raise(double *highest, uint64_t bytes, uint64_t ns)
{
    const double rate = (double)bytes * 1e9 / (double)ns;
    if (rate > *highest)
        *highest = rate;
}

/** Adds what was read until `now_ns`, and raises *highest when a span is over. */
static inline void ring_rate_add(struct ring_rate *r, uint64_t bytes, uint64_t now_ns, double *highest)
{
    r->bytes += bytes;
    if (now_ns - r->since_ns < RING_RATE_NS)
        return;
    ring_rate_raise(highest, r->bytes, now_ns - r->since_ns);
    *r = (struct ring_rate){.since_ns = now_ns};
}

#endif
