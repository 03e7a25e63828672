/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_GROWTH_H
#define MODEL_GROWTH_H

/*
 * Decides whether the memory of a stack grows. A leak grows: in every part of the time something is added,
 * and it stays. A cache that has filled, a heap that fills and empties, and a busy program with constant
 * memory do not grow.
 *
 * Runs in: the tool. Threads: pure functions of a series. Owns: nothing.
 *
 * Several periods of time are tested: all stored snapshots, and shorter and shorter periods that also end
 * now, each a fifth shorter, with at least GROWTH_SNAPSHOTS snapshots. The longest one that passes is the result,
 * so that a leak that began late is found, too. Let D(j) be the bytes held now less the bytes held at
 * snapshot j (see series.h). A period that begins at snapshot b passes if
 *
 *   1. much was added:  D(b) >= 3.3 s(b), where s^2 is the sum of the squares of all that came or left. That is the
 *      variance of D if each object comes and goes by itself, so it covers both the sampling and the program's own
 *      fluctuation. This takes at least 11 samples, and more where many come and go.
 *   2. it was added all along:  in each quarter, the bytes that arrived and are still here are at least a quarter of
 *      the average. A cache that has stopped filling has nothing of the last quarter; an emptied one, nothing of the
 *      first.
 *   3. growth does not slow down:  the arrival times of these bytes show no trend to early times of more than 2
 *      deviations, neither in the period nor in the period twice as long (Laplace's test: Cox and Lewis, "The
 *      Statistical Analysis of Series of Events", 1966, 3.3). A cache that saturates adds less and less.
 *   4. it is higher than before:  D(j) > 0 for every snapshot up to the middle of the period, and D(j) >= 2 s(j) for
 *      the snapshots before the period and in its first quarter. A heap that fills and empties was as high before.
 *
 * Growth lasts if the later half of that period passes by itself, too: then it was seen for some time, and
 * seen to go on for as long again. An alert (query/alert.h) counts only lasting growth, with a least
 * duration: a service that starts fills its caches, and only the end of the filling tells that from a leak.
 *
 * tests/unit/test_series.c has the rates. Two cases cannot be told from a leak: a cache while it fills, and a
 * heap that fills and empties but has not been seen to empty yet. One object that grows by realloc does not
 * count as growth.
 *
 * The slope is D(b) divided by the length of the period. Its interval is that of the bytes that were truly
 * added, from the intervals of the two sums whose difference is D (Zou and Donner, "Construction of
 * confidence limits about effect measures", Statistics in Medicine 27 (2008) 1693-1702).
 */

#include "model/profile/series.h"

#define GROWTH_SNAPSHOTS 8

struct growth {
    bool growing;
    bool so_far;           /* too few snapshots to judge, but much was added between the first one and now */
    uint32_t snapshots;    /* how many were stored */
    double bytes_per_hour; /* over the period, else over all stored snapshots; 0 with fewer than two */
    struct interval interval; /* the 95 % interval of bytes_per_hour */
    uint64_t since_ns;        /* start of the period; 0: fewer than two snapshots */
    uint64_t lasting_ns;      /* length of the period if growth lasts; else 0 */
};

struct growth growth_of(const struct series *s, uint32_t stack);

#endif
