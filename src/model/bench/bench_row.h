/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_BENCH_ROW_H
#define MODEL_BENCH_ROW_H

/*
 * A row: the cost of one way to be called (mechanism) with one way to record (sink), computed from measurements. How
 * these are made is the business of bench/.
 *
 * A figure is the time of a call with the mechanism, less that of the same call without it. The median is that of all
 * turns, of which each gives one figure, the median of its batches: batches of a turn share the places of code and
 * data, and are not independent. The percentiles are those of calls that are timed one at a time, less the median of
 * calls without the mechanism that are timed in the same way. They include what the clock takes to be read beside the
 * call, and the granularity of the clock.
 *
 * Runs in: the tool. Threads: pure. Owns: a row owns its figures until bench_row_release(); names are borrowed.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "model/bench/bench_switching.h"
#include "model/bench/order_statistics.h"

struct bench_numbers VEC(double);

/** Calls that were timed one at a time. */
struct bench_shots {
    struct bench_numbers bare, with; /* ns */
};

/** Batches of calls by some threads at once. */
struct bench_batches {
    unsigned threads;
    struct bench_numbers bare, differences; /* of the current turn, ns per call */
    struct bench_numbers turns;             /* a median of each turn */
    double least_bare, least;               /* ns per call, of all batches; INFINITY: none */
    uint64_t switched, apart;               /* dropped: the kernel took a CPU away; the threads ran apart */
};

/* What a mechanism asks for. */
enum bench_need {
    BENCH_NEEDS_REBUILD = 1, /* the program must be compiled for it */
    BENCH_NEEDS_ROOT = 2,
    BENCH_OF_KERNEL = 4, /* events of the kernel, not of the program */
    BENCH_NEEDS_NOTHING = 0,
};
/* What a sink keeps. */
enum bench_keeps { BENCH_KEEPS_NOTHING, BENCH_KEEPS_SUMS, BENCH_KEEPS_ORDER };

struct bench_row {
    const char *mechanism, *sink;
    const char *label;        /* of a floor: what is shown */
    const char *floor;        /* of bench_result.floors, to which it is compared; NULL: none */
    uint32_t events_per_call; /* 0: not known yet */
    uint32_t needs;           /* enum bench_need */
    enum bench_keeps keeps;
    const char *clock; /* of its time stamps; NULL: it has none */
    bool has_payload;  /* --payload was given: each event also has `payload_bytes` */
    uint32_t payload_bytes;
    struct bench_batches alone, together;
    struct bench_shots hot, isolated, cold;
    uint64_t dropped_shots;
    uint64_t expected, hits, lost, bytes; /* of the sink, in all turns */
    bool knows_hits;
    uint64_t memory_bytes; /* that the sink has taken for one thread, the most of all turns; 0: not known */
    char *unavailable;     /* why it could not be measured, and the way out; NULL: it could */
};

struct bench_rows VEC(struct bench_row);

struct bench_result {
    struct bench_rows floors, rows;
    struct bench_switchings switchings;
    double seconds; /* that it took */
    unsigned cpus, threads, turns;
};

/** ns per call; NAN: not measured. */
struct bench_figures {
    double least, median;
    struct interval interval; /* of the median; without bounds: too few turns */
    double p90, p99;
    double isolated, cold; /* medians */
    double together;       /* median, of several threads at once */
    double ratio;          /* of the median to the floor */
    double event_bytes;    /* recorded by the sink for each event */
};

void bench_row_init(struct bench_row *r, const char *mechanism, const char *sink, const char *floor,
                    unsigned threads);
void bench_row_release(struct bench_row *r);
void bench_result_release(struct bench_result *r);

/** Adds a batch, or drops and counts it. */
void bench_batches_add(struct bench_batches *b, double bare_ns, double ns, bool is_switched, bool is_apart);
/** Ends a turn. */
void bench_batches_end_turn(struct bench_batches *b);
/** Adds calls that were timed one at a time. */
void bench_shots_add(struct bench_shots *s, const uint32_t *bare_ns, const uint32_t *ns, uint32_t n);

/** Computes the figures of a row of `result`, or of a floor. */
struct bench_figures bench_row_figures(const struct bench_result *result, const struct bench_row *r);
/** Returns how many hits the sink has neither recorded nor reported as lost; 0 if it cannot know. */
uint64_t bench_row_missing(const struct bench_row *r);

#endif
