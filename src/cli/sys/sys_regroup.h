/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_SYS_REGROUP_H
#define CLI_SYS_REGROUP_H

/*
 * `--from FILE --by PART`: recorded rows, grouped anew.
 *
 * Runs in: the tool. Threads: one. Owns: nothing.
 */

#include "cli/sys/sys_options.h"
#include "model/table/table.h"
#include "sys/tool.h"

/** What tells the rows of a recording apart. A part is a word that --by takes. */
struct sys_regroup_recorded {
    uint64_t names;  /* bits of the columns whose values differ from row to row; 0: not known */
    const char *by;  /* in words, "site" or "site,file,cache" */
    bool of_several; /* the recording lists parts: its rows differ by all of them together */
};

/**
 * `hidden`: bits of the columns that were not recorded. `by`: the parts that the recording itself lists
 * (SYS_REGROUP_KEY); it must outlive the result. NULL: it has no list, and the columns that were recorded must tell.
 */
struct sys_regroup_recorded sys_regroup_recorded(const struct sys_tool *tool, uint64_t hidden,
                                                 const char *by);

/** The key of that list in a recording, with the tool's name in it. The parts are separated by commas. */
#define SYS_REGROUP_KEY "sys_%s_by"

/** Returns whether the recorded columns suffice for rows by `wanted`. */
bool sys_regroup_possible(const struct sys_regroup_recorded *recorded, const struct sys_part *wanted);

/** Merges the rows into those by `wanted`, and hides the columns that do not apply to them. */
void sys_regroup(const struct sys_tool *tool, const struct sys_part *wanted, struct table *t);

/** Reads --depth. Returns -1 to go on, or an exit code after a line on stderr. */
int sys_regroup_parse(struct sys_request *r, const struct arguments *a);

/** Of rows by directory, merges those whose names have the same first `depth` parts: net/core and net/ipv4 are net. */
void sys_regroup_cut(const struct sys_tool *tool, uint32_t depth, struct table *t);

#endif
