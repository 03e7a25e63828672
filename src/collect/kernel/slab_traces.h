/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_SLAB_TRACES_H
#define COLLECT_SLAB_TRACES_H

/*
 * Who allocated the live objects of the slab caches, from the first one on: /sys/kernel/debug/slab/CACHE/alloc_traces,
 * which a kernel has that was booted with slub_debug=U. debugfs is mounted for this process alone, at no place in the
 * file system.
 *
 * Runs in: the tool. Threads: one at a time. Owns: everything, until slab_traces_release().
 * Invariant: nothing that is read is trusted; an invalid line is left out.
 */

#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"

/** Objects of one cache that were allocated with one stack. */
struct slab_trace {
    char *cache, *site; /* "kernfs_new_node+0x1f [module]" */
    char *stack;        /* lines of the same form, the innermost first; "": not known */
    uint64_t objects;
    uint64_t age_min, age_max; /* in ticks of the kernel */
};

struct slab_traces {
    struct VEC(struct slab_trace) all;
};

/** Returns 0, or -errno with a line; without slub_debug=U there are none. */
int slab_traces_read(struct slab_traces *t, struct error *e);
/** Adds those of a file. */
void slab_traces_parse(struct slab_traces *t, const char *cache, const char *text);
void slab_traces_release(struct slab_traces *t);

#endif
