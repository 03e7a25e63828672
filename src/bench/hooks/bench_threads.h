/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BENCH_THREADS_H
#define BENCH_THREADS_H

/*
 * Runs a loop in several threads at once, and tells whether the time is to be believed.
 *
 * Runs in: the helper of `allium bench`. Threads: called by the first, which is one of those that run the loop. Owns:
 * its threads, until the process ends.
 */

#include <stdbool.h>
#include <stdint.h>

struct bench_threads;

struct bench_lap {
    double ns;        /* mean of all threads */
    bool is_switched; /* the kernel took the CPU away from a thread */
    bool is_apart;    /* the threads ran at the same time for less than 85 % of the time */
};

/** Starts all threads but the first. Returns NULL and sets errno if that is not possible. */
struct bench_threads *bench_threads_new(unsigned n);
/** Each thread runs loop(calls), and then leave(), unless it is NULL, outside of the time. */
struct bench_lap bench_threads_run(struct bench_threads *t, void (*loop)(uint64_t), uint64_t calls,
                                   void (*leave)(void));
/** Returns how often the kernel has taken the CPU away from this thread. */
long bench_threads_switches(void);

#endif
