/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_SYS_REGROUP_H
#define CLI_SYS_REGROUP_H

/*
 * `--from FILE --by PART`: rows that were recorded by another part, grouped anew.
 *
 * Runs in: the tool. Threads: one. Owns: nothing.
 */

#include "model/table/table.h"
#include "sys/tool.h"

/** Returns the part by which these columns were recorded; `hidden`: bits of those that were not. NULL: not known. */
const struct sys_part *sys_regroup_recorded(const struct sys_tool *tool, uint64_t hidden);

/** Returns whether rows by `recorded` tell what rows by `wanted` need. */
bool sys_regroup_possible(const struct sys_part *recorded, const struct sys_part *wanted);

/** Merges the rows into those by `wanted`, and hides the columns that do not apply to them. */
void sys_regroup(const struct sys_tool *tool, const struct sys_part *wanted, struct table *t);

#endif
