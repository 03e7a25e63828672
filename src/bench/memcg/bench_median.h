/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BENCH_MEDIAN_H
#define BENCH_MEDIAN_H

/*
 * A median and its interval of at least 95 %, whatever the distribution: of n independent values, the number that is
 * below the true median has the binomial distribution of n and 1/2. The interval reaches from the k-th smallest to the
 * k-th largest value, where k is the largest number for which fewer than k values are below the median with a
 * probability of at most 2.5 % (Conover, "Practical Nonparametric Statistics", 3.2).
 *
 * Runs in: the tool. Threads: pure functions of their arguments. Owns: nothing.
 */

#include <stddef.h>

#define BENCH_MEDIAN_LEAST 6 /* fewer values have no interval of 95 % */

struct bench_median {
    double value, low,
        high; /* with fewer values than BENCH_MEDIAN_LEAST: all NAN if there is none, else -INFINITY,
                                INFINITY */
};

/** Sorts the values. */
struct bench_median bench_median_of(double *values, size_t n);

#endif
