/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_EARLY_MEMORY_H
#define SYS_EARLY_MEMORY_H

/*
 * What lies before the first event of a boot's trace: objects of the slab allocator, pages, what was reserved before
 * there was an allocator, and the buffers of the trace itself.
 *
 * Runs in: the tool. Threads: one. Owns: everything, until early_memory_release().
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/hash_map.h"
#include "base/vec.h"
#include "collect/kernel/kernel_state.h"
#include "collect/kernel/slab_traces.h"
#include "collect/kernel/trace/boot_trace.h"
#include "model/kernel/early_objects.h"
#include "sys/record/kernel_capture.h"

/** Older objects with one stack, from the kernel's own records; the texts are those of the slab_traces. */
struct early_stack {
    const struct slab_trace *trace;
    uint64_t objects, bytes;
};

/** A call, with the live objects that the kernel's records and the trace have of it. */
struct early_site {
    char *site;
    uint64_t recorded, traced;
};

struct early_freed {
    char cache[64]; /* "": not known */
    uint64_t n;
};

struct early_memory {
    struct VEC(struct early_freed) freed; /* frees of older objects, by cache */
    struct map freed_index;
    uint64_t first_ns;              /* of the trace's clock */
    uint64_t lost;                  /* events that are missing: figures are bounds at best */
    bool has_objects, has_reserved; /* else slabinfo, or that line of the log, was not to be had */
    struct early_objects *objects;
    struct early_reserved reserved;
    struct boot_trace trace;
    uint64_t large_bytes;                  /* live objects of kmalloc() that have no cache */
    uint64_t pages_bytes;                  /* in use, named by no line of meminfo, and not in the trace */
    struct VEC(struct early_stack) stacks; /* those with most bytes first; empty without slub_debug=U */
    uint64_t stacks_objects, stacks_bytes;
    struct VEC(struct early_site) sites; /* all; empty without slub_debug=U */
};

/** Counts a free of an older object: the function for kernel_recorder_options. `arg` is a struct early_memory. */
void early_memory_take_free(void *arg, const struct kmem_event *e);
/** Computes the rest. `traces` must outlive `m`; it may be empty. */
void early_memory_compute(struct early_memory *m, const struct kernel_state *s, struct kernel_capture *c,
                          const struct boot_trace *b, const struct slab_traces *traces);
void early_memory_release(struct early_memory *m);

#endif
