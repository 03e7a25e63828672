/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/kernel/frag_tables.h"

#include "model/kernel/frag_sites.h"

#define N(columns) (sizeof(columns) / sizeof(*(columns)))

enum cache_column {
    C_CACHE,
    C_SLABS,
    C_BYTES,
    C_LOST,
    C_SHARE,
    C_FREE,
    C_PADDING,
    C_TAILS,
    C_OBJECTS,
    C_SHRINK_LOW,
    C_SHRINK_HIGH,
    C_FILL,
    C_PARTIAL,
    C_CPU_LOW,
    C_CPU_HIGH,
    C_SHEAF,
    C_RECLAIM,
    C_ALIASES
};
_Static_assert(C_LOST == FRAG_CACHES_WEIGHT, "as the header says");
static const struct table_column cache_columns[] = {
    [C_CACHE] = {"cache", TABLE_PLAIN, TABLE_TEXT},
    [C_SLABS] = {"slabs", TABLE_COUNT, TABLE_WHOLE, .drop_rank = 6},
    [C_BYTES] = {"slab", TABLE_BYTES, TABLE_WHOLE},
    [C_LOST] = {"lost", TABLE_BYTES, TABLE_WHOLE},
    [C_SHARE] = {"lost_share", TABLE_PERCENT, TABLE_REAL, "share"},
    [C_FREE] = {"free", TABLE_BYTES, TABLE_WHOLE},
    [C_PADDING] = {"padding", TABLE_BYTES, TABLE_WHOLE, .drop_rank = 1},
    [C_TAILS] = {"tails", TABLE_BYTES, TABLE_WHOLE, .drop_rank = 1},
    [C_OBJECTS] = {"objects", TABLE_BYTES, TABLE_WHOLE, .drop_rank = 9},
    [C_SHRINK_LOW] = {"shrink_low", TABLE_BYTES, TABLE_WHOLE, "shrink >="},
    [C_SHRINK_HIGH] = {"shrink_high", TABLE_BYTES, TABLE_WHOLE, "shrink <="},
    [C_FILL] = {"partial_fill", TABLE_PERCENT, TABLE_REAL, "fill", .drop_rank = 2},
    [C_PARTIAL] = {"partial_slabs", TABLE_COUNT, TABLE_WHOLE, "partial", .drop_rank = 7},
    [C_CPU_LOW] = {"cpu_free_low", TABLE_BYTES, TABLE_WHOLE, "cpu free >=", .drop_rank = 8},
    [C_CPU_HIGH] = {"cpu_free_high", TABLE_BYTES, TABLE_WHOLE, "cpu free <=", .drop_rank = 4},
    [C_SHEAF] = {"sheaf_free_high", TABLE_BYTES, TABLE_WHOLE, "sheaves <=", .drop_rank = 8},
    [C_RECLAIM] = {"reclaimable", TABLE_PLAIN, TABLE_FLAG, "reclaim", .drop_rank = 3},
    [C_ALIASES] = {"aliases", TABLE_PLAIN, TABLE_TEXT, .hide_if_empty = true, .drop_rank = 10},
};

static void put_high(struct table *t, uint32_t column, const struct frag_range *r)
{
    if (r->known)
        table_whole(t, column, r->high);
}

static void put_low(struct table *t, uint32_t column, const struct frag_range *r)
{
    if (r->known)
        table_whole(t, column, r->low);
}

static void put_share(struct table *t, uint32_t column, const struct frag_range *r, uint64_t part,
                      uint64_t whole)
{
    if (r->known && whole)
        table_real(t, column, 100.0 * (double)part / (double)whole);
}

static void put_cache(struct table *t, const struct frag_cache *c)
{
    const struct memory_cache *of = c->of;
    table_row(t);
    table_text(t, C_CACHE, of->name);
    table_text(t, C_ALIASES, of->aliases);
    if (memory_cache_has(of, CACHE_SLABS))
        table_whole(t, C_SLABS, of->at[CACHE_SLABS]);
    if (memory_cache_has(of, CACHE_PARTIAL))
        table_whole(t, C_PARTIAL, of->at[CACHE_PARTIAL]);
    if (memory_cache_has(of, CACHE_RECLAIMABLE))
        table_flag(t, C_RECLAIM, of->at[CACHE_RECLAIMABLE]);
    put_high(t, C_BYTES, &c->at[FRAG_BYTES]);
    put_high(t, C_LOST, &c->lost);
    put_share(t, C_SHARE, &c->lost, c->lost.high, c->at[FRAG_BYTES].high);
    put_high(t, C_FREE, &c->at[FRAG_FREE]);
    put_high(t, C_PADDING, &c->at[FRAG_PADDING]);
    put_high(t, C_TAILS, &c->at[FRAG_TAILS]);
    put_high(t, C_OBJECTS, &c->at[FRAG_OBJECTS]);
    put_low(t, C_SHRINK_LOW, &c->at[FRAG_SHRINK]);
    put_high(t, C_SHRINK_HIGH, &c->at[FRAG_SHRINK]);
    put_share(t, C_FILL, &c->partial, c->partial.low, c->partial.high);
    put_low(t, C_CPU_LOW, &c->at[FRAG_CPU_FREE]);
    put_high(t, C_CPU_HIGH, &c->at[FRAG_CPU_FREE]);
    put_high(t, C_SHEAF, &c->at[FRAG_SHEAF_FREE]);
}

struct table *frag_caches_table(const struct frag *f)
{
    struct table *t = table_new("caches", 1, cache_columns, N(cache_columns));
    vec_each (const struct frag_cache, c, &f->caches)
        put_cache(t, c);
    return t;
}

/* ---- zones ---- */

enum order_column { O_NODE, O_ZONE, O_ORDER, O_BLOCK, O_BLOCKS, O_UNUSABLE, O_EXTFRAG };
static const struct table_column order_columns[] = {
    [O_NODE] = {"node", TABLE_PLAIN, TABLE_WHOLE},
    [O_ZONE] = {"zone", TABLE_PLAIN, TABLE_TEXT},
    [O_ORDER] = {"order", TABLE_PLAIN, TABLE_WHOLE},
    [O_BLOCK] = {"block", TABLE_BYTES, TABLE_WHOLE},
    [O_BLOCKS] = {"free_blocks", TABLE_COUNT, TABLE_WHOLE},
    [O_UNUSABLE] = {"unusable_index", TABLE_PLAIN, TABLE_REAL},
    [O_EXTFRAG] = {"extfrag_index", TABLE_PLAIN, TABLE_REAL},
};

struct table *frag_orders_table(const struct frag *f)
{
    struct table *t = table_new("orders", 1, order_columns, N(order_columns));
    vec_each (const struct frag_zone, z, &f->zones)
        for (unsigned i = 0; i < z->of->orders; i++) {
            table_row(t);
            table_whole(t, O_NODE, z->of->node);
            table_text(t, O_ZONE, z->of->name);
            table_whole(t, O_ORDER, i);
            table_whole(t, O_BLOCK, f->of->page_bytes << i);
            table_whole(t, O_BLOCKS, z->of->blocks[i]);
            table_real(t, O_UNUSABLE, (double)z->unusable[i] / 1000);
            table_real(t, O_EXTFRAG, (double)z->extfrag[i] / 1000);
        }
    return t;
}

enum type_column { T_NODE, T_ZONE, T_TYPE, T_BLOCKS, T_BYTES, T_FREE, T_HIGHEST, T_MIXED };
static const struct table_column type_columns[] = {
    [T_NODE] = {"node", TABLE_PLAIN, TABLE_WHOLE},
    [T_ZONE] = {"zone", TABLE_PLAIN, TABLE_TEXT},
    [T_TYPE] = {"type", TABLE_PLAIN, TABLE_TEXT},
    [T_BLOCKS] = {"page_blocks", TABLE_COUNT, TABLE_WHOLE, "blocks"},
    [T_BYTES] = {"page_blocks", TABLE_BYTES, TABLE_WHOLE, "size"},
    [T_FREE] = {"free", TABLE_BYTES, TABLE_WHOLE},
    [T_HIGHEST] = {"highest_order", TABLE_PLAIN, TABLE_WHOLE, "highest"},
    [T_MIXED] = {"mixed_blocks", TABLE_COUNT, TABLE_WHOLE, "mixed"},
};

static void put_type(struct table *t, const struct frag *f, const struct frag_zone *z, unsigned type)
{
    const struct memory_zone *of = z->of;
    uint64_t free_pages = 0;
    for (unsigned i = 0; i < MEMORY_ORDERS_MAX; i++)
        free_pages += of->type_blocks[type][i] << i;
    if (!of->page_blocks[type] && !free_pages)
        return;
    table_row(t);
    table_whole(t, T_NODE, of->node);
    table_text(t, T_ZONE, of->name);
    table_text(t, T_TYPE, f->of->types[type]);
    table_whole(t, T_BLOCKS, of->page_blocks[type]);
    if (f->of->block_order)
        table_whole(t, T_BYTES, of->page_blocks[type] * (f->of->page_bytes << f->of->block_order));
    (of->type_capped ? table_at_least : table_whole)(t, T_FREE, free_pages * f->of->page_bytes);
    if (z->type_highest_order[type] >= 0)
        table_whole(t, T_HIGHEST, (uint64_t)z->type_highest_order[type]);
    if (of->mixed_known)
        table_whole(t, T_MIXED, of->mixed_blocks[type]);
}

struct table *frag_types_table(const struct frag *f)
{
    struct table *t = table_new("types", 1, type_columns, N(type_columns));
    vec_each (const struct frag_zone, z, &f->zones)
        for (unsigned type = 0; z->of->typed && type < f->of->n_types; type++)
            put_type(t, f, z, type);
    return t;
}

/* ---- vmalloc ---- */

enum caller_column { V_CALLER, V_BYTES, V_PAGES, V_AREAS, V_HOLES };
static const struct table_column caller_columns[] = {
    [V_CALLER] = {"caller", TABLE_PLAIN, TABLE_TEXT, .shrinkable = true},
    [V_BYTES] = {"addresses", TABLE_BYTES, TABLE_WHOLE},
    [V_PAGES] = {"pages", TABLE_BYTES, TABLE_WHOLE},
    [V_AREAS] = {"areas", TABLE_COUNT, TABLE_WHOLE},
    [V_HOLES] = {"holes", TABLE_BYTES, TABLE_WHOLE},
};

struct table *frag_callers_table(const struct frag *f)
{
    struct table *t = table_new("callers", 1, caller_columns, N(caller_columns));
    vec_each (const struct frag_caller, c, &f->vmalloc.callers) {
        table_row(t);
        table_text(t, V_CALLER, c->name);
        table_whole(t, V_BYTES, c->bytes);
        put_high(t, V_PAGES, &c->pages_bytes);
        table_whole(t, V_AREAS, c->areas);
        put_high(t, V_HOLES, &c->holes_bytes);
    }
    return t;
}
