/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_SLABINFO_H
#define COLLECT_SLABINFO_H

/*
 * The kernel's slab caches: the rows of /proc/slabinfo, and the aliases of each cache.
 *
 * SLUB merges similar caches: kmem_cache_create() then returns an existing cache, which keeps its first name.
 * slabinfo and the kernel's events show that name only; the other names are links in /sys/kernel/slab.
 *
 * Runs in: the tool. Threads: one at a time. Owns: names and rows, until slab_release().
 * Invariant: nothing that is read is trusted; an invalid line is counted in `bad_lines`.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/hash_map.h"
#include "base/vec.h"

#define SLAB_NAME_BYTES 256
#define SLAB_HEAD       "slabinfo - version: 2" /* the beginning of the file */

struct slab_cache {
    const char *name; /* as in the kernel's events */
    /* objects in use (including those in per-CPU lists), and the number that there is room for */
    uint64_t active, objects;
    uint64_t stride_bytes;      /* bytes from one object to the next, with padding and debug information */
    uint64_t object_bytes;      /* requested size; 0: not known */
    uint64_t objects_per_slab;  /* at least 1 */
    uint64_t pages_per_slab;    /* at least 1 */
    uint64_t slabs;             /* number of slabs; times pages_per_slab gives the memory */
    const char *const *aliases; /* names of other caches that were merged into this one, without its own */
    size_t aliases_len;
};

struct slab_caches {
    struct VEC(struct slab_cache) all; /* as slabinfo has them */
    size_t bad_lines;
    struct VEC(char *) kept;
    struct VEC(const char **) lists;
    struct map by_name; /* name or alias -> index into all */
};

/**
 * Reads slabinfo and, if there are any, the links. `root` is put before "/proc" and "/sys"; it is "" except
 * in tests. Returns 0, -EACCES (slabinfo is for root), -ENOENT (a kernel without it) or -EPROTO (not
 * slabinfo).
 */
int slab_read(struct slab_caches *s, const char *root, struct error *e);
void slab_release(struct slab_caches *s);
/** Finds a cache by any of its names; NULL: there is none. */
const struct slab_cache *slab_find(const struct slab_caches *s, const char *name);

/** Adds the rows of a slabinfo file of version 2. Returns 0, or -EPROTO if it does not begin as one. */
int slab_parse(struct slab_caches *s, const char *text);

/** A name in /sys/kernel/slab, and the target of its link, which merged caches share. */
struct slab_link {
    char name[SLAB_NAME_BYTES], unique[SLAB_NAME_BYTES];
};
struct slab_links VEC(struct slab_link);
/** Called once, after the rows: gives each cache its aliases. The links are sorted. */
void slab_add_links(struct slab_caches *s, struct slab_links *links);

#endif
