/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_TICK_CLOCK_H
#define COLLECT_TICK_CLOCK_H

/*
 * Converts ticks of the time stamp counter to ns of CLOCK_MONOTONIC. Pairs of both, read together, are anchors.
 *
 * While events come, time runs on from the last anchor, at the rate since the first one; each new anchor changes the
 * rate and never the time that was reached, so that converted times never go back. How far an anchor is from the line
 * between its neighbours is its residual. If this, or the error of the time reached, is above TICK_CLOCK_BOUND_NS, the
 * rate has changed: it is measured anew, and for a second there is an anchor every 10 ms. The anchors that a program
 * has left are looked at together (tick_clock_init_past()).
 *
 * Runs in: the tool. Threads: one. Pure, but for tick_clock_anchor().
 */

#include <stdbool.h>
#include <stdint.h>

#define TICK_CLOCK_BOUND_NS 100

struct tick_anchor {
    uint64_t ticks, ns;
    uint64_t width_ticks; /* between the two readings of the counter around that of the clock */
};

struct tick_clock {
    struct tick_anchor first, before,
        last; /* `first`: since then the rate is the same; `before` the last one */
    uint64_t base_ticks;
    double base_ns, ns_per_tick, ns_per_tick_before; /* from the base on, and before it */
    double residual_ns;                              /* the largest of all anchors that have two neighbours */
    uint64_t dense_until_ns;                         /* until then there are more anchors */
    /* anchors of the past, which replace all members above; borrowed. n_past 0: none */
    const struct tick_anchor *past;
    uint32_t n_past;
};

/** Reads both clocks: the narrowest of 16 tries. */
struct tick_anchor tick_clock_anchor(void);
/** Starts with two anchors, some milliseconds apart. */
void tick_clock_init(struct tick_clock *c, struct tick_anchor first, struct tick_anchor second);
/**
 * Makes a clock for events of a program that may have ended, from the `n` anchors that it has left, ascending by both
 * clocks; there is room for one more behind them, and they must live as long as the clock. `now` was read after the
 * last event. It gives the rate after the last anchor, unless the machine was suspended since: the counter then ran
 * on, and the clock did not. Returns false if there are too few anchors to know the rate.
 */
bool tick_clock_init_past(struct tick_clock *c, struct tick_anchor *anchors, uint32_t n,
                          struct tick_anchor now);
/** Adds an anchor. It is ignored if it is not later than the last one, by both clocks. */
void tick_clock_add(struct tick_clock *c, struct tick_anchor a);
/** Returns how long after the last anchor the next one is due: the rate is known for as long as it was measured. */
uint64_t tick_clock_wait_ns(const struct tick_clock *c);
/** Returns the time of `ticks` in ns of CLOCK_MONOTONIC. */
uint64_t tick_clock_ns(const struct tick_clock *c, uint64_t ticks);

/** Returns the time of `ticks` on the line through the two anchors around it, or next to it. `n` is at least 2. */
uint64_t tick_clock_between(const struct tick_anchor *anchors, uint32_t n, uint64_t ticks);
/** Returns the largest residual of anchors, in ns; 0: none has two neighbours. */
double tick_clock_residual(const struct tick_anchor *anchors, uint32_t n);

#endif
