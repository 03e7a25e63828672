/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUN_COUNTER_PRICE_H
#define RUN_COUNTER_PRICE_H

/*
 * What it costs on this machine to take a number of `--clock counter`: an atomic addition to a counter that all CPUs
 * share.
 *
 * Runs in: the tool. Threads: one at a time; makes one, and waits for its end.
 */

struct counter_price {
    double alone_ns;    /* a number that one thread takes */
    double together_ns; /* one that each of two threads takes while the other does so, too; 0: not known */
};

/** Measures it: the shortest of some rounds, within some milliseconds. */
struct counter_price counter_price_measure(void);

#endif
