/* SPDX-License-Identifier: BSD-2-Clause */
/* The accounts as rows of `allium sys kmem`. */
#include "sys/record/recorder_internal.h"

#include <string.h>

static uint32_t column_of(const struct table *t, const char *name)
{
    uint32_t i = 0;
    while (strcmp(t->columns[i].name, name) != 0)
        i++;
    return i;
}

static void add_account(struct kmem_account *to, const struct kmem_account *a)
{
    to->allocations += a->allocations;
    to->requested_bytes += a->requested_bytes;
    to->allocated_bytes += a->allocated_bytes;
    to->frees += a->frees;
    to->freed_bytes += a->freed_bytes;
    to->frees_here += a->frees_here;
    to->freed_here_bytes += a->freed_here_bytes;
}

static void name_site(struct kernel_recorder *r, struct table *t, uint32_t site, uint32_t file,
                      uint64_t call_site)
{
    const char *instead = recorder_name_instead(r, call_site);
    if (instead)
        table_text(t, site, instead);
    else
        resolver_kernel_call(&r->names, t, site, call_site);
    if (r->files && instead)
        table_text(t, file,
                   call_site == RECORDER_OWN_SITE ? RECORDER_UNKNOWN_NAME " " RECORDER_OWN_NAME
                                                  : RECORDER_UNKNOWN_NAME);
    else if (r->files)
        resolver_kernel_file(&r->names, t, file, call_site);
}

const char *kernel_recorder_add_rows(struct kernel_recorder *r, struct table *t)
{
    static const char *const filled[] = {"call_site", "file",         "allocated", "slack",
                                         "requested", "allocations",  "frees",     "freed",
                                         "live",      "live_objects", "cache"};
    enum {
        SITE,
        SOURCE_FILE,
        ALLOCATED,
        SLACK,
        REQUESTED,
        ALLOCATIONS,
        FREES,
        FREED,
        LIVE,
        LIVE_OBJECTS,
        CACHE,
        FILLED
    };
    uint32_t at[FILLED];
    size_t n;
    const struct kmem_account *rows = kmem_accounts_rows(r->accounts, &n);
    t->hidden = ~UINT64_C(0);
    for (int i = 0; i < FILLED; i++) {
        at[i] = column_of(t, filled[i]);
        if (i != SOURCE_FILE || r->files)
            t->hidden &= ~(UINT64_C(1) << at[i]);
    }
    struct map index = {0};
    struct VEC(struct kmem_account)
        merged = {0}; /* accounts of one call and cache, whatever their stacks and size classes */
    for (size_t i = 0; i < n; i++) {
        const struct {
            uint64_t call_site, cache;
        } key = {rows[i].call_site, rows[i].cache};
        bool added;
        size_t at_row = map_put(&index, &key, sizeof(key), merged.len, &added);
        if (added)
            *vec_push(&merged) = rows[i];
        else
            add_account(&merged.at[at_row], &rows[i]);
    }
    map_release(&index);
    vec_each (const struct kmem_account, a, &merged) {
        const char *cache = kmem_accounts_cache(r->accounts, a->cache);
        table_row(t);
        name_site(r, t, at[SITE], at[SOURCE_FILE], a->call_site);
        table_whole(t, at[ALLOCATED], a->allocated_bytes);
        table_whole(t, at[SLACK], a->allocated_bytes - a->requested_bytes);
        table_whole(t, at[REQUESTED], a->requested_bytes);
        table_whole(t, at[ALLOCATIONS], a->allocations);
        table_whole(t, at[FREES], a->frees_here);
        table_whole(t, at[FREED], a->freed_here_bytes);
        table_whole(t, at[LIVE], a->allocated_bytes - a->freed_bytes);
        table_whole(t, at[LIVE_OBJECTS], a->allocations - a->frees);
        if (*cache)
            table_text(t, at[CACHE], cache);
    }
    vec_release(&merged);
    return r->files ? "site,file,cache" : "site,cache";
}
