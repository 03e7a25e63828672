/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/overview/overview_tables.h"

#define N(columns) (sizeof(columns) / sizeof(*(columns)))

enum zone_column {
    ZONE_NODE,
    ZONE_NAME,
    ZONE_FREE,
    ZONE_MIN,
    ZONE_LOW,
    ZONE_HIGH,
    ZONE_LISTS,
    ZONE_MANAGED,
    ZONE_STATE
};
static const struct table_column zone_columns[] = {
    [ZONE_NODE] = {"node", TABLE_PLAIN, TABLE_WHOLE},
    [ZONE_NAME] = {"zone", TABLE_PLAIN, TABLE_TEXT},
    [ZONE_FREE] = {"free", TABLE_BYTES, TABLE_WHOLE},
    [ZONE_MIN] = {"min", TABLE_BYTES, TABLE_WHOLE},
    [ZONE_LOW] = {"low", TABLE_BYTES, TABLE_WHOLE},
    [ZONE_HIGH] = {"high", TABLE_BYTES, TABLE_WHOLE},
    [ZONE_LISTS] = {"cpu_lists", TABLE_BYTES, TABLE_WHOLE, .drop_rank = 1},
    [ZONE_MANAGED] = {"managed", TABLE_BYTES, TABLE_WHOLE},
    [ZONE_STATE] = {"state", TABLE_PLAIN, TABLE_TEXT},
};

struct table *overview_zones_table(const struct overview *m)
{
    struct table *t = table_new("zones", 1, zone_columns, N(zone_columns));
    vec_each (const struct overview_zone, z, &m->zones) {
        table_row(t);
        table_whole(t, ZONE_NODE, z->node);
        table_text(t, ZONE_NAME, z->name);
        table_whole(t, ZONE_FREE, z->free_bytes);
        table_whole(t, ZONE_MIN, z->min_bytes);
        table_whole(t, ZONE_LOW, z->low_bytes);
        table_whole(t, ZONE_HIGH, z->high_bytes);
        table_whole(t, ZONE_LISTS, z->cpu_lists_bytes);
        table_whole(t, ZONE_MANAGED, z->managed_bytes);
        table_text(t, ZONE_STATE,
                   z->free_bytes < z->min_bytes    ? "below min"
                   : z->free_bytes < z->low_bytes  ? "below low"
                   : z->free_bytes < z->high_bytes ? "below high"
                                                   : "ok");
    }
    return t;
}

enum swap_column { SWAP_PATH, SWAP_TYPE, SWAP_SIZE, SWAP_USED, SWAP_PRIORITY, SWAP_MEMORY };
static const struct table_column swap_columns[] = {
    [SWAP_PATH] = {"swap", TABLE_PLAIN, TABLE_TEXT},
    [SWAP_TYPE] = {"type", TABLE_PLAIN, TABLE_TEXT},
    [SWAP_SIZE] = {"size", TABLE_BYTES, TABLE_WHOLE},
    [SWAP_USED] = {"used", TABLE_BYTES, TABLE_WHOLE},
    [SWAP_PRIORITY] = {"priority", TABLE_PLAIN, TABLE_SIGNED},
    [SWAP_MEMORY] = {"memory", TABLE_BYTES, TABLE_WHOLE, .hide_if_empty = true},
};

struct table *overview_swaps_table(const struct overview *m)
{
    struct table *t = table_new("swaps", 1, swap_columns, N(swap_columns));
    vec_each (const struct overview_swap, s, &m->swaps) {
        table_row(t);
        table_text(t, SWAP_PATH, s->path);
        table_text(t, SWAP_TYPE, s->type);
        table_whole(t, SWAP_SIZE, s->size_bytes);
        table_whole(t, SWAP_USED, s->used_bytes);
        table_signed(t, SWAP_PRIORITY, s->priority);
        if (s->memory_bytes)
            table_whole(t, SWAP_MEMORY, s->memory_bytes);
    }
    return t;
}

enum pressure_column { PSI_RESOURCE, PSI_WHO, PSI_LAST, PSI_10, PSI_60, PSI_300, PSI_TOTAL };
static const struct table_column pressure_columns[] = {
    [PSI_RESOURCE] = {"pressure", TABLE_PLAIN, TABLE_TEXT},
    [PSI_WHO] = {"waiting", TABLE_PLAIN, TABLE_TEXT},
    [PSI_LAST] = {"interval", TABLE_PERCENT, TABLE_REAL},
    [PSI_10] = {"last_10s", TABLE_PERCENT, TABLE_REAL},
    [PSI_60] = {"last_1min", TABLE_PERCENT, TABLE_REAL},
    [PSI_300] = {"last_5min", TABLE_PERCENT, TABLE_REAL},
    [PSI_TOTAL] = {"since_boot", TABLE_DURATION, TABLE_WHOLE},
};

static void add_stall(struct table *t, const char *resource, const char *who, const struct overview_stall *s)
{
    if (!s->known)
        return;
    table_row(t);
    table_text(t, PSI_RESOURCE, resource);
    table_text(t, PSI_WHO, who);
    if (s->last >= 0)
        table_real(t, PSI_LAST, s->last);
    table_real(t, PSI_10, s->avg10);
    table_real(t, PSI_60, s->avg60);
    table_real(t, PSI_300, s->avg300);
    table_whole(t, PSI_TOTAL, s->total_us > UINT64_MAX / 1000 ? UINT64_MAX : s->total_us * 1000);
}

struct table *overview_pressure_table(const struct overview *m)
{
    struct table *t = table_new("pressure", 1, pressure_columns, N(pressure_columns));
    for (int i = 0; i < OVERVIEW_RESOURCES; i++) {
        add_stall(t, overview_resource_names[i], "some", &m->pressure[i].some);
        add_stall(t, overview_resource_names[i], "full", &m->pressure[i].full);
    }
    return t;
}

enum cgroup_column {
    CG_MEMORY,
    CG_LIMIT,
    CG_SWAP,
    CG_ANON,
    CG_FILE,
    CG_SHMEM,
    CG_KERNEL,
    CG_KILLS,
    CG_VERSION,
    CG_PATH
};
static const struct table_column cgroup_columns[] = {
    [CG_MEMORY] = {"memory", TABLE_BYTES, TABLE_WHOLE},
    [CG_LIMIT] = {"limit", TABLE_BYTES, TABLE_WHOLE},
    [CG_SWAP] = {"swap", TABLE_BYTES, TABLE_WHOLE, .hide_if_empty = true, .drop_rank = 1},
    [CG_ANON] = {"anon", TABLE_BYTES, TABLE_WHOLE},
    [CG_FILE] = {"file", TABLE_BYTES, TABLE_WHOLE},
    [CG_SHMEM] = {"shmem", TABLE_BYTES, TABLE_WHOLE, .drop_rank = 3},
    [CG_KERNEL] = {"kernel", TABLE_BYTES, TABLE_WHOLE, .hide_if_empty = true, .drop_rank = 4},
    [CG_KILLS] = {"oom_kills", TABLE_COUNT, TABLE_WHOLE, .drop_rank = 2},
    [CG_VERSION] = {"version", TABLE_PLAIN, TABLE_WHOLE, .drop_rank = 5},
    [CG_PATH] = {"cgroup", TABLE_PLAIN, TABLE_TEXT},
};

struct table *overview_cgroups_table(const struct overview *m)
{
    struct table *t = table_new("cgroups", 1, cgroup_columns, N(cgroup_columns));
    vec_each (const struct overview_cgroup, c, &m->cgroups) {
        table_row(t);
        table_whole(t, CG_MEMORY, c->usage_bytes);
        if (c->limit_bytes != UINT64_MAX)
            table_whole(t, CG_LIMIT, c->limit_bytes);
        if (c->swap_known)
            table_whole(t, CG_SWAP, c->swap_bytes);
        if (c->kinds_known) {
            table_whole(t, CG_ANON, c->anon_bytes);
            table_whole(t, CG_FILE, c->file_bytes);
            table_whole(t, CG_SHMEM, c->shmem_bytes);
        }
        if (c->kernel_known)
            table_whole(t, CG_KERNEL, c->kernel_bytes);
        if (c->kills_known)
            table_whole(t, CG_KILLS, c->oom_kills);
        table_whole(t, CG_VERSION, c->version);
        table_text(t, CG_PATH, c->path);
    }
    return t;
}

enum slab_column { SLAB_MEMORY, SLAB_OBJECTS, SLAB_ACTIVE, SLAB_SIZE, SLAB_NAME };
static const struct table_column slab_columns[] = {
    [SLAB_MEMORY] = {"memory", TABLE_BYTES, TABLE_WHOLE},
    [SLAB_OBJECTS] = {"objects", TABLE_COUNT, TABLE_WHOLE},
    [SLAB_ACTIVE] = {"active", TABLE_COUNT, TABLE_WHOLE},
    [SLAB_SIZE] = {"object", TABLE_BYTES, TABLE_WHOLE},
    [SLAB_NAME] = {"slab_cache", TABLE_PLAIN, TABLE_TEXT},
};

struct table *overview_slabs_table(const struct overview *m)
{
    struct table *t = table_new("slabs", 1, slab_columns, N(slab_columns));
    vec_each (const struct overview_slab, s, &m->slabs) {
        table_row(t);
        table_whole(t, SLAB_MEMORY, s->bytes);
        table_whole(t, SLAB_OBJECTS, s->objects);
        table_whole(t, SLAB_ACTIVE, s->active);
        table_whole(t, SLAB_SIZE, s->object_bytes);
        table_text(t, SLAB_NAME, s->name);
    }
    return t;
}

enum node_column {
    NODE_ID,
    NODE_TOTAL,
    NODE_FREE,
    NODE_ANON,
    NODE_FILE,
    NODE_SLAB,
    NODE_HIT,
    NODE_MISS,
    NODE_FOREIGN
};
static const struct table_column node_columns[] = {
    [NODE_ID] = {"node", TABLE_PLAIN, TABLE_WHOLE},
    [NODE_TOTAL] = {"total", TABLE_BYTES, TABLE_WHOLE},
    [NODE_FREE] = {"free", TABLE_BYTES, TABLE_WHOLE},
    [NODE_ANON] = {"anon", TABLE_BYTES, TABLE_WHOLE},
    [NODE_FILE] = {"file", TABLE_BYTES, TABLE_WHOLE},
    [NODE_SLAB] = {"slab", TABLE_BYTES, TABLE_WHOLE},
    [NODE_HIT] = {"hit", TABLE_COUNT, TABLE_WHOLE},
    [NODE_MISS] = {"miss", TABLE_COUNT, TABLE_WHOLE},
    [NODE_FOREIGN] = {"foreign", TABLE_COUNT, TABLE_WHOLE},
};

struct table *overview_nodes_table(const struct overview *m)
{
    struct table *t = table_new("nodes", 1, node_columns, N(node_columns));
    vec_each (const struct overview_node, n, &m->nodes) {
        table_row(t);
        table_whole(t, NODE_ID, n->id);
        table_whole(t, NODE_TOTAL, n->total_bytes);
        table_whole(t, NODE_FREE, n->free_bytes);
        table_whole(t, NODE_ANON, n->anon_bytes);
        table_whole(t, NODE_FILE, n->file_bytes);
        table_whole(t, NODE_SLAB, n->slab_bytes);
        table_whole(t, NODE_HIT, n->hit);
        table_whole(t, NODE_MISS, n->miss);
        table_whole(t, NODE_FOREIGN, n->foreign);
    }
    return t;
}

enum huge_column { HUGE_SIZE, HUGE_TOTAL, HUGE_FREE, HUGE_RESERVED, HUGE_SURPLUS };
static const struct table_column huge_columns[] = {
    [HUGE_SIZE] = {"huge_page", TABLE_BYTES, TABLE_WHOLE},
    [HUGE_TOTAL] = {"pages", TABLE_COUNT, TABLE_WHOLE},
    [HUGE_FREE] = {"free", TABLE_COUNT, TABLE_WHOLE},
    [HUGE_RESERVED] = {"reserved", TABLE_COUNT, TABLE_WHOLE},
    [HUGE_SURPLUS] = {"surplus", TABLE_COUNT, TABLE_WHOLE},
};

struct table *overview_huge_table(const struct overview *m)
{
    struct table *t = table_new("huge_pages", 1, huge_columns, N(huge_columns));
    vec_each (const struct overview_huge, h, &m->huge) {
        table_row(t);
        table_whole(t, HUGE_SIZE, h->size_bytes);
        table_whole(t, HUGE_TOTAL, h->total);
        table_whole(t, HUGE_FREE, h->free);
        table_whole(t, HUGE_RESERVED, h->reserved);
        table_whole(t, HUGE_SURPLUS, h->surplus);
    }
    return t;
}
