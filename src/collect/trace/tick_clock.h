/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_TICK_CLOCK_H
#define COLLECT_TICK_CLOCK_H

/*
 * From ticks of the time stamp counter to nanoseconds of CLOCK_MONOTONIC. Pairs of both, read together, are anchors.
 * Between anchors time runs at the rate of the last two; each new anchor changes the rate and never the time that was
 * reached, so that converted times never go back.
 *
 * Runs in: the tool. Threads: one. Pure, but for tick_clock_anchor().
 */

#include <stdbool.h>
#include <stdint.h>

struct tick_anchor {
    uint64_t ticks, ns;
    uint64_t width_ticks; /* between the two readings of the counter around that of the clock */
};

struct tick_clock {
    struct tick_anchor first, last;
    uint64_t base_ticks;
    double base_ns, ns_per_tick;
};

/** Reads both clocks: the narrowest of 16 tries. */
struct tick_anchor tick_clock_anchor(void);
/** Starts with two anchors, some milliseconds apart. */
void tick_clock_init(struct tick_clock *c, struct tick_anchor first, struct tick_anchor second);
void tick_clock_add(struct tick_clock *c, struct tick_anchor a);
uint64_t tick_clock_ns(const struct tick_clock *c, uint64_t ticks);

#endif
