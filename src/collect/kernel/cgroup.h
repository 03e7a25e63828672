/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_CGROUP_H
#define COLLECT_CGROUP_H

/*
 * Control groups: from a path to the ids that the kernel uses, and back; and their memory. Two hierarchies
 * are known: version 2, and the memory controller of version 1 if it is mounted there.
 *
 * Runs in: the tool. Threads: one at a time. Owns: a struct cgroups owns the paths that it returns.
 * Invariant: a level is given only where it is known. In a cgroup namespace the depth of its root is not.
 */

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum cgroup_hierarchy {
    CGROUP_V2,
    CGROUP_V1_MEMORY,
    CGROUP_HIERARCHIES,
};

#define CGROUP_LEVEL_UNKNOWN (-1)

struct cgroup_ref {
    enum cgroup_hierarchy hierarchy;
    uint64_t id; /* cgroup->kn->id; in version 2, the value of bpf_get_current_cgroup_id() */
    /* cgroup->level: 0 is the root of the hierarchy, not of our mount; or CGROUP_LEVEL_UNKNOWN */
    int level;
    char folder[PATH_MAX]; /* folder with its files */
    char path[PATH_MAX];   /* as in /proc/PID/cgroup: "/system.slice/x.service" */
};

/**
 * Finds a cgroup. `path` is a folder below a mount of either hierarchy, or a path as in /proc/PID/cgroup
 * ("/system.slice/x.service"; the first slash may be missing), which is searched in version 2 first. Returns
 * 0; -ENOENT: no such cgroup; -EINVAL: it belongs to another controller, or is no cgroup; -ENOSYS: no
 * hierarchy is mounted; or the error of reading it. `*e` has the line.
 */
int cgroup_find(const char *path, struct cgroup_ref *out, struct error *e);

/* ---- ids to paths ---- */

struct cgroups;

/** Never returns NULL. Nothing is read before it is needed. */
struct cgroups *cgroups_new(void);
void cgroups_free(struct cgroups *c);
/**
 * Returns the path, as in /proc/PID/cgroup, of the cgroup with this id; if it is gone, the path when last
 * seen. NULL: not known. A new id makes it walk the hierarchy, at most once a second.
 */
const char *cgroups_path(struct cgroups *c, enum cgroup_hierarchy hierarchy, uint64_t id);

/** The path of a cgroup, from another source. What is known already stays. */
void cgroups_learn(struct cgroups *c, enum cgroup_hierarchy hierarchy, uint64_t id, const char *path);

/** Returns whether any cgroup of the hierarchy was seen. False: it is not mounted here, or was not walked
 * yet. */
bool cgroups_seen(const struct cgroups *c, enum cgroup_hierarchy hierarchy);

/* ---- memory ---- */

#define CGROUP_NO_LIMIT UINT64_MAX
#define CGROUP_UNKNOWN  (UINT64_MAX - 1)

/** In bytes; CGROUP_UNKNOWN where the kernel shows no value, as for the root of version 2. */
struct cgroup_memory {
    uint64_t usage_bytes, peak_bytes;
    uint64_t limit_bytes; /* of the group itself, not of an ancestor; or CGROUP_NO_LIMIT */
};

/** Returns 0; -ENOENT: it is gone, or has no memory controller; -ETIMEDOUT: the kernel does not answer. */
int cgroup_memory_read(const struct cgroup_ref *c, struct cgroup_memory *out);

#endif
