/* SPDX-License-Identifier: BSD-2-Clause */
/* The accounts as rows of `allium sys kmem`. */
#include "sys/record/kernel_capture.h"

#include <string.h>

#include "bpf/kmem.h"

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

static void put_name(struct table *t, uint32_t column, void (*add)(void *arg, struct buf *b, uint64_t call),
                     void *arg, uint64_t call)
{
    struct buf b = BUF_INIT;
    add(arg, &b, call);
    table_text(t, column, buf_str(&b));
    buf_release(&b);
}

enum column {
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
    COMM,
    COLUMNS
};

/* In tables of sys kmem. */
static const char *const names_of_columns[COLUMNS] = {
    [SITE] = "call_site",      [SOURCE_FILE] = "file",          [ALLOCATED] = "allocated", [SLACK] = "slack",
    [REQUESTED] = "requested", [ALLOCATIONS] = "allocations",   [FREES] = "frees",         [FREED] = "freed",
    [LIVE] = "live",           [LIVE_OBJECTS] = "live_objects", [CACHE] = "cache",         [COMM] = "comm",
};

/* Finds the columns, and shows those that are known. */
static void find_columns(const struct kernel_capture *c, struct table *t, uint32_t at[static COLUMNS])
{
    t->hidden = ~UINT64_C(0);
    for (int i = 0; i < COLUMNS; i++) {
        at[i] = column_of(t, names_of_columns[i]);
        if ((i != SOURCE_FILE || c->names.add_file) && (i != COMM || c->comms))
            t->hidden &= ~(UINT64_C(1) << at[i]);
    }
}

struct accounts VEC(struct kmem_account);

/* Accounts of one call, cache and program become one, whatever their stacks and size classes. */
static void merge(struct accounts *merged, const struct kernel_capture *c)
{
    size_t n;
    struct map index = {0};
    const struct kmem_account *rows = kmem_accounts_rows(c->accounts, &n);
    for (size_t i = 0; i < n; i++) {
        const struct {
            uint64_t call_site;
            uint32_t cache, comm;
        } key = {rows[i].call_site, rows[i].cache, rows[i].comm};
        bool added;
        size_t row = map_put(&index, &key, sizeof(key), merged->len, &added);
        if (added)
            *vec_push(merged) = rows[i];
        else
            add_account(&merged->at[row], &rows[i]);
    }
    map_release(&index);
}

const char *kernel_capture_add_rows(struct kernel_capture *c, struct table *t)
{
    const struct kernel_code_names *names = &c->names;
    uint32_t at[COLUMNS];
    struct accounts merged = {0};
    find_columns(c, t, at);
    merge(&merged, c);
    vec_each (const struct kmem_account, a, &merged) {
        const char *cache = kmem_accounts_text(c->accounts, a->cache);
        table_row(t);
        put_name(t, at[SITE], names->add_call, names->arg, a->call_site);
        if (names->add_file)
            put_name(t, at[SOURCE_FILE], names->add_file, names->arg, a->call_site);
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
        if (c->comms)
            table_text(t, at[COMM], kmem_accounts_text(c->accounts, a->comm));
    }
    vec_release(&merged);
    if (c->comms)
        return names->add_file ? "site,file,cache,comm" : "site,cache,comm";
    return names->add_file ? "site,file,cache" : "site,cache";
}

void kernel_capture_count(const struct kernel_capture *c, uint64_t counted[static SYS_COUNTS])
{
    const struct kmem_totals *t = kmem_accounts_totals(c->accounts);
    counted[SYS_RING_FULL] = c->lost;
    counted[KMEM_NULL_FREES] = t->null_frees;
    counted[KMEM_REUSED] = t->frees_without_event;
    counted[KMEM_FREED_BEFORE] = t->unmatched_frees;
}
