/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_GROWTH_H
#define MODEL_GROWTH_H

/*
 * Does a stack grow? A leak does: something is added in every part of the time, and stays. A cache that has filled, a
 * heap that fills and empties, a program that is busy and holds the same do not.
 *
 * Runs in: the tool. Threads: pure functions of a series. Owns: nothing.
 *
 * Which stretches of time are asked about: all looks kept, and others that end now, each by a fifth shorter, with
 * GROWTH_LOOKS looks or more. The longest that passes is the answer, so a leak that began late is found, too. With D(j)
 * what is held now less what was held at look j (see series.h), a stretch that begins at look b passes if
 *
 *   1. much was added:  D(b) >= 3.3 s(b), where s^2 is the sum of the squares of all that came or left. That is the
 *      variance of D if each object comes and goes by itself, so it covers the sampling and the program's own to and
 *      fro. It takes 11 samples at least, and more where many come and go.
 *   2. all along:  what arrived in each quarter and is still here is a quarter of the average or more. A cache that has
 *      stopped filling has nothing of the last quarter; one that was emptied, nothing of the first.
 *   3. not ever slower:  the times at which that arrived show no trend to the early ones of more than 2 deviations,
 *      neither in the stretch nor in the one twice as long (Laplace's test: Cox and Lewis, "The Statistical Analysis of
 *      Series of Events", 1966, 3.3). A cache that saturates adds ever less.
 *   4. higher than before:  D(j) > 0 for every look up to the middle of the stretch, and D(j) >= 2 s(j) for those
 *      before it and in its first quarter. What fills and empties was as high before.
 *
 * It lasts if the later half of that stretch passes by itself, too: then growth was seen over some time, and seen to go
 * on over as much again. For those who do not sit there only that counts, with a time that it must have lasted
 * (query/alert.h): a service that starts fills its caches, and nothing tells that from a leak but that it ends.
 *
 * tests/unit/test_series.c has the rates. What cannot be told apart: a cache while it fills, or something that fills
 * and empties and has not been seen to empty yet, from a leak. One object that grows (realloc) is no growth here.
 *
 * The slope is D(b) by the length of the stretch. Its interval is of what was truly added, from the intervals of the
 * two sums that D is the difference of (Zou and Donner, "Construction of confidence limits about effect measures",
 * Statistics in Medicine 27 (2008) 1693-1702).
 */

#include "model/profile/series.h"

#define GROWTH_LOOKS 8

struct growth {
    bool growing;
    double bytes_per_hour;    /* of the stretch, else of all looks kept; 0 with fewer than two */
    struct interval interval; /* of that, 95 % */
    uint64_t since_ns;        /* when the stretch begins; 0: fewer than two looks */
    uint64_t lasting_ns;      /* length of the stretch, if it lasts; else 0 */
};

struct growth growth_of(const struct series *s, uint32_t stack);

#endif
