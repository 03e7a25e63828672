/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_CGROUP_MOUNTS_H
#define COLLECT_CGROUP_MOUNTS_H

/* The mounts of the cgroup hierarchies. Pure functions, but for cgroup_folder_id(). */

#include <stdbool.h>
#include <stdint.h>

#include "collect/kernel/cgroup.h"
#include "collect/kernel/mounts.h"

/** Returns the mount that shows most of the hierarchy; of equal ones the last. NULL: none. */
const struct mount *cgroup_mount_of(const struct mounts *m, enum cgroup_hierarchy hierarchy);
/**
 * Returns the mount of any hierarchy (also of other controllers of version 1) that contains the folder; NULL:
 * none.
 */
const struct mount *cgroup_mount_around(const struct mounts *m, const char *folder);
/** Tells which hierarchy of enum cgroup_hierarchy the mount is. Returns false if it is another one. */
bool cgroup_mount_is(const struct mount *m, enum cgroup_hierarchy *out);
/** Returns the controllers, or the name, of a mount of version 1: "cpu,cpuacct", "name=systemd". Points into
 * its options. */
const char *cgroup_mount_controllers(const struct mount *m);

/** Returns the number of folders in a path: 0 for "/" and "", -1 when it has a "..". */
int cgroup_depth(const char *path);
/**
 * Joins the mount's root and a path below it into a path without slashes at its end: "/", "/a/b". Returns
 * false if it does not fit.
 */
bool cgroup_join(const char *root, const char *below, char *out, size_t size);

/** Gets the id of a folder in a hierarchy. Returns 0 or -errno. */
int cgroup_folder_id(const char *folder, uint64_t *id);

#endif
