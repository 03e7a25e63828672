/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_FRAG_TABLES_H
#define MODEL_FRAG_TABLES_H

/*
 * Fragmentation as tables, for the screen, JSON, the page and recordings. The caller frees each table; none is NULL.
 * Values that are not known stay so.
 *
 * Runs in: the tool. Threads: pure. Owns: nothing.
 */

#include "model/kernel/frag.h"
#include "model/table/table.h"

/** Slab caches, those that lose most first. */
struct table *frag_caches_table(const struct frag *f);
/** The column of that table by which the page is weighed. */
#define FRAG_CACHES_WEIGHT 3u
/** Zones and orders: free blocks, and both indices. */
struct table *frag_orders_table(const struct frag *f);
/** Zones and migrate types: page blocks, and what is free in them. */
struct table *frag_types_table(const struct frag *f);
/** Callers of vmalloc(), those with most addresses first. */
struct table *frag_callers_table(const struct frag *f);

/** Sums of calls and caches, from a capture (frag_sites.h). */
enum frag_site_column {
    FRAG_SITE,
    FRAG_SITE_FILE,
    FRAG_SITE_CACHE,
    FRAG_SITE_PINNED_LOW,
    FRAG_SITE_PINNED_HIGH,
    FRAG_SITE_HALF_EMPTY,
    FRAG_SITE_LIVE_SLACK,
    FRAG_SITE_LIVE,
    FRAG_SITE_LIVE_OBJECTS,
    FRAG_SITE_SLACK,
    FRAG_SITE_ALLOCATED,
    FRAG_SITE_COLUMNS
};
/** An empty table with these columns. */
struct table *frag_sites_table(void);
/** The rows of such a table added up by cache: internal fragmentation by bucket, that with most slack first. */
struct table *frag_buckets_table(const struct table *sites);
/** Sorts sites: those that pin most first, then those with most slack. */
void frag_sites_sort(struct table *sites);
/** Requests that took a block of another migrate type, from a capture: the ones with most first. */
enum frag_fallback_column {
    FRAG_FALLBACKS,
    FRAG_FALLBACK_TYPE, /* that was requested */
    FRAG_FALLBACK_ORDER,
    FRAG_FALLBACK_COMM,
    FRAG_FALLBACK_STACK,
    FRAG_FALLBACK_COLUMNS
};
/** An empty table with these columns. */
struct table *frag_fallbacks_table(void);
/** Returns the sum of a column, and in `known` whether any row has a value. */
uint64_t frag_column_sum(const struct table *t, uint32_t column, bool *known);
/** Returns the live bytes of kmallocs of whole pages among the sites. */
struct frag_range frag_large_bytes(const struct table *sites);

#endif
