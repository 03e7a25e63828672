/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_EARLY_OBJECTS_H
#define MODEL_EARLY_OBJECTS_H

/*
 * The objects of the slab allocator that were allocated before the first event of a trace, and are still live: what the
 * caches hold less what the trace saw allocated, with bounds.
 *
 * slabinfo counts the objects in use, but takes every object of a slab that a CPU works on for one in use. A free
 * without an event (in bulk, for example) leaves an object in the trace's accounts that is gone. So, of a cache with
 *
 *   active     objects in use, as slabinfo counts them
 *   slots      room for objects in its slabs
 *   cpu_slots  room in those slabs that CPUs work on
 *   traced     objects that are live in the trace
 *
 * at least active - cpu_slots - traced objects are older, since the trace's live objects are too many, if anything; and
 * at most slots - traced: an object that was freed without an event has left a free slot, so the error of one is in the
 * other, too; never more than `active`. If the slabs of such objects have gone as well, the trace has more live objects
 * than there are slots; then only `active` is a bound.
 *
 * Events of many kernels name the cache of a free only. Then caches with objects of one size are one row.
 *
 * Runs in: the tool. Threads: pure. Owns: everything, until early_objects_free(); texts are copied.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EARLY_UNKNOWN UINT64_MAX

struct early_cache {
    const char *name;
    uint64_t stride_bytes; /* of an object with its padding: what events have as allocated */
    uint64_t active, slots;
    uint64_t cpu_slots; /* EARLY_UNKNOWN: not known, so there is no lower bound */
    bool is_kmalloc;
    bool has_others; /* a cache of kmalloc() that the kernel uses for kmem_cache_alloc(), too */
};

/** Objects that the trace has live. */
struct early_live {
    const char *cache; /* ""; not known */
    bool is_kmalloc;
    uint64_t stride_bytes, objects;
};

struct early_row {
    char *caches; /* "kmalloc-64, kmalloc-cg-64"; of more than three caches "dentry, filp and 4 others" */
    uint64_t stride_bytes, active, slots, cpu_slots, traced;
    uint64_t own_low, own_high; /* older objects that belong to the tracing itself */
    uint64_t low, high;         /* the other older objects, with both bounds */
    uint64_t frees;             /* of older objects, while the trace ran; kfree() does not tell the cache */
};

struct early_sums {
    uint64_t low_bytes, high_bytes;         /* of older objects, without the next two */
    uint64_t own_low_bytes, own_high_bytes; /* of older objects of the tracing itself */
    uint64_t active_bytes;                  /* of all objects in use, without these (their low bound) */
    uint64_t unplaced_objects;              /* live in the trace, in caches that slabinfo does not have */
};

struct early_objects;

/** Never NULL. */
struct early_objects *early_objects_new(void);
void early_objects_free(struct early_objects *o); /* NULL is allowed */

void early_objects_add_cache(struct early_objects *o, const struct early_cache *c);
void early_objects_add_live(struct early_objects *o, const struct early_live *l);
/** Adds frees of older objects, of a cache; "": not known. */
void early_objects_add_frees(struct early_objects *o, const char *cache, uint64_t n);
/** `n` objects of kmalloc() with that stride are older than the trace and belong to the tracing. */
void early_objects_set_own(struct early_objects *o, uint64_t stride_bytes, uint64_t n);
/** After the others: computes the rows. `lost`: events are missing, so that there are no bounds but `active` and 0. */
void early_objects_compute(struct early_objects *o, bool lost);
/** Returns the rows, those with most bytes first. */
const struct early_row *early_objects_rows(const struct early_objects *o, size_t *n);
struct early_sums early_objects_sums(const struct early_objects *o);

/** What the kernel took before it had an allocator, by the line "Memory: ..." of its log; in bytes. */
struct early_reserved {
    uint64_t total, available, code, rwdata, rodata, init, bss, reserved;
};
/** Reads such a line. Returns false if it is not one. */
bool early_reserved_parse(struct early_reserved *r, const char *line);

#endif
