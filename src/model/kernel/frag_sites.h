/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_FRAG_SITES_H
#define MODEL_FRAG_SITES_H

/*
 * Fragmentation by the calls that allocate: the slack of their live objects, and the memory that these objects pin,
 * as they keep half-empty slabs from being freed. Computed from the live objects of a trace, and the sizes of slabs.
 *
 * A slab counts as half-empty if at least half of its places are free. The trace tells of objects that were allocated
 * or freed while it ran; the other places of a slab may be free or hold older objects. So there are bounds: at least
 * the places whose object was seen to be freed, at most all without an object that is known to be live. What a slab's
 * free places take is shared among its live objects, evenly.
 *
 * Runs in: the tool. Threads: pure. Owns: the lists, until frag_sites_release().
 */

#include "model/kernel/frag.h"
#include "model/kernel/kmem_accounts.h"

/** Sums of a call and a cache. */
struct frag_site {
    uint64_t call_site;
    uint32_t cache; /* kmem_accounts_text(); where allocations do not name it, see frag_sites.c */
    uint64_t allocated_bytes, slack_bytes; /* of all objects that were allocated, live or not */
    uint64_t live_objects, live_bytes, live_slack_bytes;
    struct frag_range pinned_bytes; /* not known: the size of the cache's slabs is not */
    uint64_t half_empty_slabs;      /* that may be half-empty, in which there are objects of this site */
};

struct frag_sites {
    struct VEC(struct frag_site) all;
    bool follows_freed; /* else nothing is known of freed objects: the lower bounds are 0 */
};

/** `s` tells the sizes of slabs; it must be as old as the newest event. `follows_freed`: kmem_accounts_keep_freed() was
 * called before the first event. */
void frag_sites_compute(struct frag_sites *f, const struct kmem_accounts *a, const struct memory_state *s,
                        bool follows_freed);
void frag_sites_release(struct frag_sites *f);

/** The name of objects of kmalloc() of that size in the accounts of a trace, whose events do not name the cache. */
#define FRAG_KMALLOC_NAME "(kmalloc %u)"
/** ... and of kmallocs of whole pages. */
#define FRAG_LARGE_NAME "(pages)"

#endif
