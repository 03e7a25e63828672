/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_OVERVIEW_TABLES_H
#define MODEL_OVERVIEW_TABLES_H

/*
 * The lists of a struct machine as tables, each for the caller to free. Their names are the keys of the lists in JSON.
 *
 * Runs in: the tool. Threads: pure.
 */

#include "model/overview/overview.h"
#include "model/table/table.h"

struct table *machine_zones_table(const struct machine *m);
struct table *machine_swaps_table(const struct machine *m);
struct table *machine_pressure_table(const struct machine *m);
struct table *machine_processes_table(const struct machine *m);
struct table *machine_cgroups_table(const struct machine *m);
struct table *machine_slabs_table(const struct machine *m);
struct table *machine_nodes_table(const struct machine *m);
struct table *machine_huge_table(const struct machine *m);
/** The latest first; 0: all. */
struct table *machine_kills_table(const struct machine *m, uint32_t top);

#endif
