/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_BENCH_ADVICE_H
#define MODEL_BENCH_ADVICE_H

/*
 * The cheapest rows for each combination of means and wishes: a program that can be rebuilt or not, root or not, events
 * of the kernel; sums, or each event in its order. Only rows that were measured, and that lost nothing, are advised.
 *
 * Runs in: the tool. Threads: pure. Owns: the list, until vec_release(); rows are borrowed of the result.
 */

#include "model/bench/bench_row.h"

struct bench_advice {
    uint32_t needs;         /* enum bench_need: what is at hand */
    enum bench_keeps keeps; /* what is wanted */
    const struct bench_row *row;
    double event_ns;     /* at this rate */
    double cpu;          /* share of a CPU at this rate, 1: all of it */
    double buffer_bytes; /* for each CPU; NAN: none is needed */
    double held_s;       /* that the buffer holds at this rate, if all events are of one CPU */
};
struct bench_advices VEC(struct bench_advice);

/** `rate`: events in a second, above 0. */
struct bench_advices bench_advice_find(const struct bench_result *result, double rate);

#endif
