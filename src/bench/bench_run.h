/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BENCH_RUN_H
#define BENCH_RUN_H

/*
 * Measures rows in turns: each turn starts a helper anew, measures a row for some milliseconds, and goes on with the
 * next row, until the time is over. So all rows see the same disturbances, and no row depends on where its code
 * happens to lie.
 *
 * Runs in: the tool. Threads: one. Owns: nothing; results belong to the caller.
 */

#include "base/error.h"
#include "bench/bench_catalogue.h"
#include "bench/hooks/bench_turn.h"
#include "model/bench/bench_row.h"

/* A row. Names are borrowed. */
struct bench_pair {
    const char *mechanism, *sink;
    const char *floor; /* NULL: none */
    uint32_t needs;    /* enum bench_need */
    enum bench_keeps keeps;
    const char *clock; /* NULL: none */
    bool has_payload;  /* --payload is given: */
    uint32_t payload_bytes;
};

struct bench_options {
    const char *helper; /* path */
    struct VEC(struct bench_pair) pairs;
    unsigned threads; /* to run together; 1: only one at a time */
    uint64_t time_ns;
    bool switches; /* measure also what switching costs */
    /** Called after each turn of a row; NULL: not wanted. */
    void (*progress)(double share);
};

/** Returns the number of CPUs that this process may use. */
unsigned bench_cpus(void);
/** Returns 0, or -errno and a line; a row that cannot be measured here is no error. */
int bench_run(const struct bench_options *o, struct bench_result *out, struct error *e);

#endif
