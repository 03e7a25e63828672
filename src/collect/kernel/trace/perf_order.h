/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_PERF_ORDER_H
#define COLLECT_PERF_ORDER_H

/*
 * Records of perf.data in the order of their times. perf writes what is in the buffer of one CPU, then in that of the
 * next, and so on: a round. A record of a later round is not older than the end of the round before.
 *
 * Runs in: the tool. Threads: one. Owns: copies of the records that wait, until perf_order_release().
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/vec.h"

struct perf_order_entry {
    uint64_t time_ns;
    size_t at; /* in `bytes` */
};

struct perf_order {
    struct VEC(struct perf_order_entry) entries, room;
    struct buf bytes;
    uint64_t newest_ns; /* of all records */
    uint64_t before_ns; /* the newest one of the rounds before this one */
};

typedef int perf_order_fn(void *arg, const void *record);

/** Takes a copy of a record. */
void perf_order_add(struct perf_order *o, uint64_t time_ns, const void *record, size_t bytes);
/** A round has ended: gives the records that no later one can precede. `last`: all. Returns 0, or what `f` returned. */
int perf_order_round(struct perf_order *o, bool last, perf_order_fn *f, void *arg);
void perf_order_release(struct perf_order *o);

#endif
