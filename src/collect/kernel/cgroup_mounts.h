/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_CGROUP_MOUNTS_H
#define COLLECT_CGROUP_MOUNTS_H

/*
 * Where the hierarchies of control groups are mounted, and what of them. Pure, but for cgroup_folder_id().
 *
 * Runs in: the tool. Threads: any.
 */

#include <stdbool.h>
#include <stdint.h>

#include "collect/kernel/cgroup.h"
#include "collect/kernel/mounts.h"

/** The mount that shows most of the hierarchy; of equal ones the last. NULL: none. */
const struct mount *cgroup_mount_of(const struct mounts *m, enum cgroup_hierarchy hierarchy);
/**
 * The mount of a hierarchy of any kind (also of another controller of version 1) that the folder lies in; NULL: none.
 */
const struct mount *cgroup_mount_around(const struct mounts *m, const char *folder);
/** Which of ours a mount is; false: another one. */
bool cgroup_mount_is(const struct mount *m, enum cgroup_hierarchy *out);
/** The controllers, or the name, of a mount of version 1: "cpu,cpuacct", "name=systemd". Points into its options. */
const char *cgroup_mount_controllers(const struct mount *m);

/** The number of folders in a path: 0 for "/" and "". -1 when it has a "..". */
int cgroup_depth(const char *path);
/**
 * The mount's root and a path below it, as one path without slashes at its end: "/", "/a/b". False: it does not fit.
 */
bool cgroup_join(const char *root, const char *below, char *out, size_t size);

/** The id of a folder in a hierarchy. 0 or -errno. */
int cgroup_folder_id(const char *folder, uint64_t *id);

#endif
