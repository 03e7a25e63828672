/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_BENCH_PARTS_H
#define MODEL_BENCH_PARTS_H

/*
 * The cost of a row as the sum of parts. Each part is measured alone, and by how much cheaper the row is without it.
 * The sum is not the whole: a processor executes parts at the same time, and parts displace one another in its caches.
 * So the difference is a part of its own if it is more than a tenth.
 *
 * Runs in: the tool. Threads: pure. Owns: nothing; labels are borrowed.
 */

#include "model/bench/bench_row.h"

struct bench_part {
    const char *label;
    double count;              /* times in a call */
    bool is_for_each_event;    /* `count` is that of an event */
    size_t alone;              /* number of its row in bench_result.rows */
    size_t less;               /* of the row that is subtracted from that; 0: none */
    size_t without;            /* of the row without the part; 0: it cannot be taken out */
    double alone_ns, gains_ns; /* gains: what the row is cheaper without it; NAN: not known */
};

struct bench_parts {
    struct VEC(struct bench_part) list;
    double whole_ns, sum_ns; /* NAN: not known */
    bool is_apart;           /* they differ by more than a tenth */
};

/** Fills in the times. The row that is explained is the first of the result. */
void bench_parts_compute(struct bench_parts *p, const struct bench_result *result);

#endif
