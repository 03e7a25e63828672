/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_CGROUP_MEMORY_H
#define COLLECT_CGROUP_MEMORY_H

/*
 * Memory of control groups, from the version whose hierarchy has the memory controller. The root group is
 * left out: it is the whole machine.
 */

#include "model/overview/overview.h"

/** Parses memory.stat of either version. */
void cgroup_parse_stat(struct overview_cgroup *c, const char *text);
/** Parses "oom_kill 3" in memory.events or memory.oom_control. */
void cgroup_parse_kills(struct overview_cgroup *c, const char *text);
/** Reads the `top` largest groups (0: all) with their memory. Returns 0 or -errno; -ENOENT: no group has a
 * memory controller. */
int cgroups_read(struct overview *m, uint32_t top);

#endif
