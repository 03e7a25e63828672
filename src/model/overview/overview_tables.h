/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_OVERVIEW_TABLES_H
#define MODEL_OVERVIEW_TABLES_H

/*
 * The lists of a struct overview as tables, which the caller frees. Their names are the keys of the lists in
 * JSON.
 *
 * Runs in: the tool. Threads: pure.
 */

#include "model/overview/overview.h"
#include "model/table/table.h"

struct table *overview_zones_table(const struct overview *m);
struct table *overview_swaps_table(const struct overview *m);
struct table *overview_pressure_table(const struct overview *m);
struct table *overview_processes_table(const struct overview *m);
struct table *overview_cgroups_table(const struct overview *m);
struct table *overview_slabs_table(const struct overview *m);
struct table *overview_nodes_table(const struct overview *m);
struct table *overview_huge_table(const struct overview *m);
/** The latest first; at most `top` rows, 0: all. */
struct table *overview_kills_table(const struct overview *m, uint32_t top);

#endif
