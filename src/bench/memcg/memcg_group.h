/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BENCH_MEMCG_GROUP_H
#define BENCH_MEMCG_GROUP_H

/*
 * A memory cgroup of the command's own, directly below the root of the hierarchy that has the memory controller, and
 * its counters. It is removed also if the command is killed by SIGKILL (undo_later.h); if nothing else does, by the
 * next memcg_group_open().
 *
 * Runs in: the tool, as root. Threads: one. Owns: the cgroup, its process, the descriptors.
 */

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "bench/memcg/mem_profiling.h"
#include "bench/undo_later.h"
#include "collect/kernel/cgroup.h"

/* Names of cgroups: this, the id of the process that made it, and what vm.mem_profiling was, to be restored. */
#define MEMCG_GROUP_PREFIX    "allium-bench-"
#define MEMCG_GROUP_PROFILING ".mem_profiling="

struct memcg_group {
    enum cgroup_hierarchy hierarchy; /* the one that has the memory controller */
    char folder[PATH_MAX];           /* of the cgroup */
    int root_procs, own_procs;       /* cgroup.procs of the root, and of the cgroup */
    int lock;                        /* the folder, locked */
    struct undo_later remover;
    struct mem_profiling profiling; /* restored with the cgroup's removal */
};

/**
 * Removes cgroups of earlier commands that were killed, then makes one. When it is removed, `profiling` is restored;
 * NULL: nothing to restore. Returns 0, or -errno with a line that says why this machine has no memory cgroups for us:
 * -ENOSYS, -EACCES, -EROFS and others.
 */
int memcg_group_open(struct memcg_group *g, const struct mem_profiling *profiling, struct error *e);
/** Lets the cgroup be removed, and waits for it. Returns 0, or -errno with a line if it remains. */
int memcg_group_close(struct memcg_group *g, struct error *e);

/** Closes what a child process must not keep open, so that the end of the command is seen. */
void memcg_group_forked(const struct memcg_group *g);
/** Moves the calling process into the cgroup, or into the root. Returns 0 or -errno. */
int memcg_group_enter(const struct memcg_group *g, bool own);

/** Parts of a cgroup's memory. */
enum memcg_part {
    MEMCG_KERNEL, /* slab, page tables, and other memory of the kernel */
    MEMCG_ANONYMOUS,
    MEMCG_FILE,
    MEMCG_PARTS,
};

/**
 * Reads a counter of the cgroup, in bytes, to the page: the kernel adds up its processors' counts only after many
 * changes, so the calling process, which must be in the cgroup, makes as many. Returns 0 or -errno.
 */
int memcg_group_read(const struct memcg_group *g, enum memcg_part part, uint64_t *bytes);

#endif
