/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_SLAB_TRACES_H
#define COLLECT_SLAB_TRACES_H

/*
 * Who allocated the live objects of the slab caches, from the first one on: /sys/kernel/debug/slab/CACHE/alloc_traces,
 * which a kernel has that was booted with slub_debug=U; and free_traces beside it, which tells, for the place of each
 * live object, who freed the object that was there before. Before Linux 5.14 they are
 * /sys/kernel/slab/CACHE/alloc_calls and
 * free_calls, without stacks. For the running kernel, debugfs is mounted for this process alone, at no place in the
 * file system.
 *
 * Runs in: the tool. Threads: one at a time. Owns: everything, until slab_traces_release().
 * Invariant: nothing that is read is trusted; an invalid line is left out.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"

/** Objects of one cache that were allocated with one stack. */
struct slab_trace {
    char *cache, *site; /* "kernfs_new_node+0x1f [module]" */
    char *stack;        /* lines of the same form, the innermost first; "": not known */
    char *cpus, *nodes; /* lists as "0-1,3"; "": not known, or the machine has one */
    uint64_t objects;
    uint64_t age_min, age_mean, age_max; /* in ticks of the kernel */
    uint64_t pid_min, pid_max;           /* threads */
    uint64_t waste_bytes;  /* of all these objects: what kmalloc() was not asked for; 0: also not known */
    uint64_t object_bytes; /* what an object may hold; 0: not known */
    bool is_freed;         /* of free_traces */
};

struct slab_traces {
    struct VEC(struct slab_trace) all;
    uint64_t broken; /* lines that were not understood */
    /* Set it before: sites and stacks keep the sizes of functions, "kernfs_new_node+0x1f/0x60", and addresses. */
    bool code_sizes;
};

/** Returns 0, or -errno with a line; without slub_debug=U there are none. */
int slab_traces_read(struct slab_traces *t, struct error *e);

/** Returns whether a folder has copies: CACHE/alloc_traces and so on. */
bool slab_traces_is_folder(const char *path);
/**
 * Adds the copies in a folder, with sizes from CACHE/object_size if that was copied, too. Returns 0 and when the last
 * of them was written (CLOCK_REALTIME), or -errno with a line.
 */
int slab_traces_read_folder(struct slab_traces *t, const char *path, uint64_t *written_ns, struct error *e);
/** Sets `cache` to what `path` says: "dentry" if it ends in dentry/alloc_traces, else "". Returns whether the file is
 * of frees. */
bool slab_traces_name(const char *path, char *cache, size_t room);
/** Returns whether a text begins as these files do. */
bool slab_traces_is_text(const char *text, size_t len);

/** Adds those of a file. `is_freed`: it is free_traces. */
void slab_traces_parse(struct slab_traces *t, const char *cache, bool is_freed, const char *text);
/**
 * Sets the sizes that are not known yet: from "dentry\tobject_size\t192" in the text KERNEL_STATE_SLAB (NULL: there is
 * none), else from names as "kmalloc-cg-1k".
 */
void slab_traces_find_sizes(struct slab_traces *t, const char *slab);
void slab_traces_release(struct slab_traces *t);

#endif
