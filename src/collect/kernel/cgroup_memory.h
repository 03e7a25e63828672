/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_CGROUP_MEMORY_H
#define COLLECT_CGROUP_MEMORY_H

/*
 * Memory of control groups, of version 2 where it has the memory controller, of version 1 where that has it. The root
 * group is left out: that is the machine.
 *
 * Runs in: the tool. Threads: the parsers are pure.
 */

#include "model/overview/overview.h"

/** memory.stat of either version. */
void cgroup_parse_stat(struct overview_cgroup *c, const char *text);
/** "oom_kill 3" of memory.events or memory.oom_control. */
void cgroup_parse_kills(struct overview_cgroup *c, const char *text);
/** The `top` largest, with what they hold; 0: all. 0 or -errno. -ENOENT: no group has a memory controller. */
int cgroups_read(struct overview *m, uint32_t top);

#endif
