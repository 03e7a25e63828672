/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables of the calls that allocate, from a capture. */
#include "base/hash_map.h"
#include "model/kernel/frag_sites.h"
#include "model/kernel/frag_tables.h"

static const struct table_column site_columns[FRAG_SITE_COLUMNS] = {
    [FRAG_SITE] = {"site", TABLE_PLAIN, TABLE_TEXT, .shrinkable = true},
    [FRAG_SITE_FILE] = {"file", TABLE_PLAIN, TABLE_TEXT, .hide_if_empty = true, .shrinkable = true,
                        .drop_rank = 3},
    [FRAG_SITE_CACHE] = {"cache", TABLE_PLAIN, TABLE_TEXT},
    [FRAG_SITE_PINNED_LOW] = {"pinned_low", TABLE_BYTES, TABLE_WHOLE, "pinned >="},
    [FRAG_SITE_PINNED_HIGH] = {"pinned_high", TABLE_BYTES, TABLE_WHOLE, "pinned <="},
    [FRAG_SITE_HALF_EMPTY] = {"half_empty_slabs_high", TABLE_COUNT, TABLE_WHOLE, "slabs <=", .drop_rank = 2},
    [FRAG_SITE_LIVE_SLACK] = {"live_slack", TABLE_BYTES, TABLE_WHOLE, "slack"},
    [FRAG_SITE_LIVE] = {"live", TABLE_BYTES, TABLE_WHOLE},
    [FRAG_SITE_LIVE_OBJECTS] = {"live_objects", TABLE_COUNT, TABLE_WHOLE, "objects", .drop_rank = 1},
    [FRAG_SITE_SLACK] = {"slack", TABLE_BYTES, TABLE_WHOLE, "slack of all", .drop_rank = 4},
    [FRAG_SITE_ALLOCATED] = {"allocated", TABLE_BYTES, TABLE_WHOLE, .drop_rank = 5},
};

struct table *frag_sites_table(void)
{
    return table_new("sites", 1, site_columns, FRAG_SITE_COLUMNS);
}

static const struct table_column fallback_columns[FRAG_FALLBACK_COLUMNS] = {
    [FRAG_FALLBACKS] = {"fallbacks", TABLE_COUNT, TABLE_WHOLE},
    [FRAG_FALLBACK_TYPE] = {"migrate_type", TABLE_PLAIN, TABLE_TEXT, "type"},
    [FRAG_FALLBACK_ORDER] = {"order", TABLE_PLAIN, TABLE_WHOLE},
    [FRAG_FALLBACK_COMM] = {"comm", TABLE_PLAIN, TABLE_TEXT},
    [FRAG_FALLBACK_STACK] = {"kernel_stack", TABLE_PLAIN, TABLE_LINES},
};

struct table *frag_fallbacks_table(void)
{
    return table_new("fallbacks", 1, fallback_columns, FRAG_FALLBACK_COLUMNS);
}

enum bucket_column {
    B_CACHE,
    B_LIVE_SLACK,
    B_LIVE,
    B_LIVE_OBJECTS,
    B_SLACK,
    B_ALLOCATED,
    B_SHARE,
    B_COLUMNS
};
static const struct table_column bucket_columns[B_COLUMNS] = {
    [B_CACHE] = {"cache", TABLE_PLAIN, TABLE_TEXT},
    [B_LIVE_SLACK] = {"live_slack", TABLE_BYTES, TABLE_WHOLE, "slack"},
    [B_LIVE] = {"live", TABLE_BYTES, TABLE_WHOLE},
    [B_LIVE_OBJECTS] = {"live_objects", TABLE_COUNT, TABLE_WHOLE, "objects"},
    [B_SLACK] = {"slack", TABLE_BYTES, TABLE_WHOLE, "slack of all"},
    [B_ALLOCATED] = {"allocated", TABLE_BYTES, TABLE_WHOLE},
    [B_SHARE] = {"slack_share", TABLE_PERCENT, TABLE_REAL, "share"},
};

static const struct {
    enum bucket_column to;
    enum frag_site_column from;
} summed[] = {
    {B_LIVE_SLACK, FRAG_SITE_LIVE_SLACK},     {B_LIVE, FRAG_SITE_LIVE},
    {B_LIVE_OBJECTS, FRAG_SITE_LIVE_OBJECTS}, {B_SLACK, FRAG_SITE_SLACK},
    {B_ALLOCATED, FRAG_SITE_ALLOCATED},
};

static void add_to_bucket(struct table *t, uint32_t row, const struct table *sites, uint32_t site)
{
    for (size_t i = 0; i < sizeof(summed) / sizeof(*summed); i++) {
        const struct table_value *v = table_at(sites, site, summed[i].from);
        struct table_value *sum = &t->values.at[(size_t)row * t->n_columns + summed[i].to];
        if (v->known)
            *sum = (struct table_value){.known = true, .whole = (sum->known ? sum->whole : 0) + v->whole};
    }
}

struct table *frag_buckets_table(const struct table *sites)
{
    struct map index = {0};
    struct table *t = table_new("buckets", 1, bucket_columns, B_COLUMNS);
    for (uint32_t i = 0; i < table_rows(sites); i++) {
        const struct table_value *cache = table_at(sites, i, FRAG_SITE_CACHE);
        const char *name = cache->known ? cache->text : "[unknown]";
        bool added;
        const size_t row = map_put(&index, name, strlen(name), table_rows(t), &added);
        if (added) {
            table_row(t);
            table_text(t, B_CACHE, name);
        }
        add_to_bucket(t, (uint32_t)row, sites, i);
    }
    map_release(&index);
    for (uint32_t i = 0; i < table_rows(t); i++) {
        const struct table_value *slack = table_at(t, i, B_SLACK), *all = table_at(t, i, B_ALLOCATED);
        if (slack->known && all->known && all->whole)
            *table_cell(t, i, B_SHARE) = (struct table_value){
                .known = true, .real = 100.0 * (double)slack->whole / (double)all->whole};
    }
    table_sort(t, B_SLACK, TABLE_MOST_FIRST);
    table_sort(t, B_LIVE_SLACK, TABLE_MOST_FIRST);
    return t;
}

void frag_sites_sort(struct table *sites)
{
    table_sort(sites, FRAG_SITE_SLACK, TABLE_MOST_FIRST);
    table_sort(sites, FRAG_SITE_LIVE_SLACK, TABLE_MOST_FIRST);
    table_sort(sites, FRAG_SITE_PINNED_HIGH, TABLE_MOST_FIRST);
    table_sort(sites, FRAG_SITE_PINNED_LOW, TABLE_MOST_FIRST);
}

uint64_t frag_column_sum(const struct table *t, uint32_t column, bool *known)
{
    uint64_t sum = 0;
    *known = false;
    for (uint32_t i = 0; i < table_rows(t); i++) {
        const struct table_value *v = table_at(t, i, column);
        *known = *known || v->known;
        sum += v->known ? v->whole : 0;
    }
    return sum;
}

struct frag_range frag_large_bytes(const struct table *sites)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < table_rows(sites); i++) {
        const struct table_value *cache = table_at(sites, i, FRAG_SITE_CACHE),
                                 *live = table_at(sites, i, FRAG_SITE_LIVE);
        if (cache->known && live->known && !strcmp(cache->text, FRAG_LARGE_NAME))
            sum += live->whole;
    }
    return frag_exact(sum);
}
