/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BENCH_MEMCG_COST_H
#define BENCH_MEMCG_COST_H

/*
 * What allocations of the kernel cost in a memory cgroup of their own, compared with the root cgroup, whose memory is
 * not charged; and, where the kernel has /proc/allocinfo, what memory allocation profiling costs. One process does
 * both, and moves between the cgroups, so that all but the cgroup is equal; the order alternates.
 *
 * Runs in: the tool, as root. Threads: one.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "bench/memcg/memcg_work.h"
#include "model/bench/order_statistics.h"

#define MEMCG_COST_ROWS 5

enum memcg_cost_side {
    MEMCG_COST_ROOT,
    MEMCG_COST_OWN,
    MEMCG_COST_PROFILED, /* in the root cgroup, with memory allocation profiling */
    MEMCG_COST_SIDES,
};

/** A median of turns, with its interval; without bounds: too few turns. */
struct memcg_median {
    double value;
    struct interval interval;
};

struct memcg_cost_row {
    const struct memcg_work_kind *kind;
    struct error unavailable; /* "": measured */
    /* Of MEMCG_COST_OWN and MEMCG_COST_PROFILED, compared with MEMCG_COST_ROOT turn by turn: */
    struct memcg_median ns[MEMCG_COST_SIDES], ratio[MEMCG_COST_SIDES], more_ns[MEMCG_COST_SIDES];
    uint32_t turns, turns_dropped; /* dropped: the process was preempted throughout */
    uint32_t held;                 /* allocations that were held at once, */
    uint64_t charged_bytes;        /* and the cgroup was charged with these bytes in all, */
    uint64_t remaining_bytes;      /* of which these stayed charged after the release */
};

struct memcg_cost {
    enum cgroup_hierarchy hierarchy;
    struct memcg_cost_row rows[MEMCG_COST_ROWS];
    struct error profiling; /* why memory allocation profiling was not measured; "": it was */
};

struct memcg_cost_options {
    uint64_t row_ns;   /* time for each row */
    bool charges_only; /* do not measure time */
};

/** Returns 0, or -errno with a line: the machine has no memory cgroups for us, or the cgroup remains. */
int memcg_cost_measure(const struct memcg_cost_options *o, struct memcg_cost *out, struct error *e);

#endif
