/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_SLABINFO_H
#define COLLECT_SLABINFO_H

/*
 * The kernel's slab caches: rows of /proc/slabinfo, and by which other names a cache goes.
 *
 * SLUB merges caches that are alike: kmem_cache_create() then gives out one that is there already, under the name that
 * it got first. slabinfo and the kernel's events know that name alone; the others are links in /sys/kernel/slab.
 *
 * Runs in: the tool. Threads: one at a time. Owns: names and rows, until slab_release().
 * Invariant: nothing that is read is trusted; a line that is none is counted in `bad_lines`.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/hash_map.h"
#include "base/vec.h"

#define SLAB_NAME_BYTES 256
#define SLAB_HEAD       "slabinfo - version: 2" /* what the file begins with */

struct slab_cache {
    const char *name;           /* as the kernel's events have it */
    uint64_t active, objects;   /* objects in use (those in per-CPU lists too), and room for how many */
    uint64_t stride_bytes;      /* what one takes, with padding and debug information */
    uint64_t object_bytes;      /* what was asked for; 0: not known */
    uint64_t objects_per_slab;  /* at least 1 */
    uint64_t pages_per_slab;    /* at least 1 */
    uint64_t slabs;             /* times pages_per_slab: what it takes */
    const char *const *aliases; /* other caches that are this one, by name; never its own */
    size_t aliases_len;
};

struct slab_caches {
    struct VEC(struct slab_cache) all; /* as slabinfo has them */
    size_t bad_lines;
    struct VEC(char *) kept;
    struct VEC(const char **) lists;
    struct map by_name; /* aliases too -> index into all */
};

/**
 * Reads slabinfo and, if it is there, the links; `root` goes before "/proc" and "/sys", "" but for tests. 0; or -EACCES
 * (slabinfo is for root), -ENOENT (a kernel without it), -EPROTO (it is not slabinfo).
 */
int slab_read(struct slab_caches *s, const char *root, struct error *e);
void slab_release(struct slab_caches *s);
/** By any of its names; NULL: there is none. */
const struct slab_cache *slab_find(const struct slab_caches *s, const char *name);

/** Adds the rows of a slabinfo file of version 2. 0 or -EPROTO: it does not begin as one. */
int slab_parse(struct slab_caches *s, const char *text);

/** A name in /sys/kernel/slab, and where its link leads: what merged caches have in common. */
struct slab_link {
    char name[SLAB_NAME_BYTES], unique[SLAB_NAME_BYTES];
};
struct slab_links VEC(struct slab_link);
/** Once, after the rows: gives each cache its aliases. The order of the links does not matter, and is changed. */
void slab_add_links(struct slab_caches *s, struct slab_links *links);

#endif
