/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What many threads cost one another where all of them count at one place: CPU for each pair, as a ratio to one
 * thread's.
 */
#ifndef ALLIUM_BENCH_CROWD_H
#define ALLIUM_BENCH_CROWD_H

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "stats.h"

#define CROWD_THREADS_MOST 64
#define CROWD_ROUNDS_MOST  4001
#define CROWD_TURNS        20
#define CROWD_AT_MOST      2.0

struct crowd {
    void (*run)(void); /* `pairs` pairs of malloc and free */
    unsigned pairs;
};

static void *crowd_thread(void *arg)
{
    const struct crowd *c = arg;
    for (int i = 0; i < CROWD_TURNS; i++)
        c->run();
    return NULL;
}

static double crowd_cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double crowd_pair_ns(struct crowd *c, unsigned threads)
{
    pthread_t t[CROWD_THREADS_MOST];
    double before = crowd_cpu_ns();
    for (unsigned i = 0; i < threads; i++)
        if (pthread_create(&t[i], NULL, crowd_thread, c))
            exit(2);
    for (unsigned i = 0; i < threads; i++)
        pthread_join(t[i], NULL);
    return (crowd_cpu_ns() - before) / ((double)threads * CROWD_TURNS * c->pairs);
}

/* The exit code of the benchmark: 0 when the bound is kept. */
static int crowd_measure(struct crowd *c, const char *place, const char *threads_word, double seconds)
{
    static double ns[2][CROWD_ROUNDS_MOST];
    unsigned threads = (unsigned)atoi(threads_word) % (CROWD_THREADS_MOST + 1);
    size_t rounds = 0;
    for (double began = stats_now_ns(); rounds < CROWD_ROUNDS_MOST && stats_now_ns() - began < seconds * 1e9;
         rounds++) {
        ns[0][rounds] = crowd_pair_ns(c, 1);
        ns[1][rounds] = crowd_pair_ns(c, threads);
    }
    struct stats_ratio r = stats_ratio(ns[1], ns[0], rounds);
    printf(
        "%u threads, %s: CPU for each pair %5.3f (%5.3f-%5.3f) of one thread's %.2f ns, at most %.2f  %s\n",
        threads, place, r.ratio, r.low, r.high, stats_median(ns[0], rounds), CROWD_AT_MOST,
        r.ratio <= CROWD_AT_MOST ? "reached" : "MISSED");
    return r.ratio > CROWD_AT_MOST;
}

#endif
