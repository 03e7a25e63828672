/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_CGROUPS_GONE_H
#define SYS_CGROUPS_GONE_H

/*
 * The paths of cgroups that were removed while a tool runs, from bpf/cgroup_rmdir.bpf.h. Without them, as on a kernel
 * whose tracepoint has other arguments, such a cgroup is not known.
 *
 * Runs in: the tool. Threads: one. Owns: nothing.
 */

#include <bpf/btf.h>

#include "collect/kernel/cgroup.h"
#include "sys/session.h"

/** Returns whether the tool shows cgroups in rows by this part, or in events, of which there is none. */
bool cgroups_gone_needed(const struct sys_tool *tool, const struct sys_part *part);
/** Called before loading: chooses the program if the tool shows cgroups and the program fits this kernel. */
void cgroups_gone_choose(struct sys_session *s, const struct btf *kernel);
/** Moves the paths to `all`. Returns whether there were any. */
bool cgroups_gone_take(struct sys_session *s, struct cgroups *all, enum cgroup_hierarchy hierarchy);

#endif
