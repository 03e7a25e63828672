/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUN_RING_RATE_H
#define RUN_RING_RATE_H

/*
 * The highest rate at which a ring was written, over spans of RING_RATE_NS.
 *
 * Runs in: the tool. Threads: that of the reader. Pure.
 */

#include <stdint.h>

#define RING_RATE_NS 50000000u

struct ring_rate {
    uint64_t since_ns, bytes; /* since when, how much was read */
};

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
