/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BENCH_MEMCG_TABLE_H
#define BENCH_MEMCG_TABLE_H

/*
 * The costs of memory cgroups as a table, a row for each operation, and the sentences that belong below it.
 *
 * Runs in: the tool. Threads: pure functions of their arguments. Owns: nothing.
 */

#include "base/buf.h"
#include "bench/memcg/memcg_cost.h"
#include "model/table/table.h"

enum memcg_column {
    MEMCG_OPERATION,
    MEMCG_MEANING,
    MEMCG_ROOT_NS,
    MEMCG_OWN_NS,
    MEMCG_RATIO,
    MEMCG_RATIO_LOW,
    MEMCG_RATIO_HIGH,
    MEMCG_MORE_NS,
    MEMCG_MORE_LOW_NS,
    MEMCG_MORE_HIGH_NS,
    MEMCG_PROFILED_NS,
    MEMCG_PROFILED_RATIO,
    MEMCG_PROFILED_LOW,
    MEMCG_PROFILED_HIGH,
    MEMCG_CHARGED_BYTES,
    MEMCG_HELD,
    MEMCG_REMAINING_BYTES,
    MEMCG_TURNS,
    MEMCG_DROPPED,
    MEMCG_UNAVAILABLE,
    MEMCG_VERSION,
    MEMCG_UNPROFILED,
    MEMCG_COLUMNS,
};

/** Bits of the columns that memcg_table_notes() says once for all rows. */
#define MEMCG_NOTED (1u << MEMCG_VERSION | 1u << MEMCG_UNPROFILED)

/** Returns a table, which the caller frees. Values that were not measured are unknown. */
struct table *memcg_table_new(const struct memcg_cost *cost);
/** Appends lines: how it was measured, what was published, what could not be measured, with the reason. */
void memcg_table_notes(const struct memcg_cost *cost, struct buf *out);

#endif
