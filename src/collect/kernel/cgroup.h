/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_CGROUP_H
#define COLLECT_CGROUP_H

/*
 * Control groups: from a path to what the kernel knows one by, and back; their memory. There are two hierarchies that
 * count: the one of version 2, and the memory controller's of version 1, where that controller was left to it.
 *
 * Runs in: the tool. Threads: one at a time. Owns: a struct cgroups owns the paths that it hands out.
 * Invariant: a level is told only where it is known: in a cgroup namespace nobody says how deep its root lies.
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
    uint64_t id; /* cgroup->kn->id; of version 2, what bpf_get_current_cgroup_id() gives */
    int level;   /* cgroup->level: 0 is the root of the hierarchy, not of our mount; CGROUP_LEVEL_UNKNOWN */
    char folder[PATH_MAX]; /* where its files are */
    char path[PATH_MAX];   /* as /proc/PID/cgroup has it: "/system.slice/x.service" */
};

/**
 * `path`: a folder below a mount of either hierarchy, or a path as /proc/PID/cgroup has it ("/system.slice/x.service",
 * the first slash may be missing), looked for in version 2 first. 0; or -ENOENT: there is no such cgroup; -EINVAL: it
 * is one of another controller, or no cgroup at all; -ENOSYS: no hierarchy is mounted; what looking at it gave. `*e`
 * has the line.
 */
int cgroup_find(const char *path, struct cgroup_ref *out, struct error *e);

/* ---- ids to paths ---- */

struct cgroups;

/** Never NULL. Nothing is read before it is needed. */
struct cgroups *cgroups_new(void);
void cgroups_free(struct cgroups *c);
/**
 * The path, as /proc/PID/cgroup has it, of the cgroup of this id; of one that is gone, what it was when last seen.
 * NULL: not known. An id that is new makes it walk the hierarchy, at most once a second.
 */
const char *cgroups_path(struct cgroups *c, enum cgroup_hierarchy hierarchy, uint64_t id);

/** Has it seen any cgroup of the hierarchy? False: that is not mounted here, or was not walked yet. */
bool cgroups_seen(const struct cgroups *c, enum cgroup_hierarchy hierarchy);

/* ---- memory ---- */

#define CGROUP_NO_LIMIT UINT64_MAX
#define CGROUP_UNKNOWN  (UINT64_MAX - 1)

/** Bytes; CGROUP_UNKNOWN where the kernel does not tell, as of the root of version 2. */
struct cgroup_memory {
    uint64_t usage_bytes, peak_bytes;
    uint64_t limit_bytes; /* its own, not an ancestor's; CGROUP_NO_LIMIT */
};

/** 0; or -ENOENT: it is gone, or has no memory controller; -ETIMEDOUT: the kernel does not answer. */
int cgroup_memory_read(const struct cgroup_ref *c, struct cgroup_memory *out);

#endif
