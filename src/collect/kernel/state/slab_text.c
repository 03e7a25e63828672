/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Slab caches from slabinfo and from the attributes of /sys/kernel/slab. The folder of a cache that others were merged
 * into, or might be, has a name like ":0000192", to which the caches' own names are links; slabinfo has the name of the
 * first one.
 */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/hash_map.h"
#include "collect/kernel/proc_text.h"
#include "collect/kernel/slabinfo.h"
#include "collect/kernel/state/memory_parse.h"

static const char *const attribute_names[CACHE_VALUES] = {
    [CACHE_OBJECT_BYTES] = "object_size",
    [CACHE_STRIDE_BYTES] = "slab_size",
    [CACHE_PER_SLAB] = "objs_per_slab",
    [CACHE_ORDER] = "order",
    [CACHE_SLABS] = "slabs",
    [CACHE_ROOM] = "total_objects",
    [CACHE_USED] = "objects",
    [CACHE_PARTIAL] = "partial",
    [CACHE_PARTIAL_USED] = "objects_partial",
    [CACHE_CPU_SLABS] = "cpu_slabs",
    [CACHE_CPU_PARTIAL_SLABS] = "slabs_cpu_partial",
    [CACHE_CPU_PARTIAL_LIMIT] = "cpu_partial",
    [CACHE_MIN_PARTIAL] = "min_partial",
    [CACHE_SHEAF] = "sheaf_capacity",
    [CACHE_ALIGN] = "align",
    [CACHE_HW_ALIGN] = "hwcache_align",
    [CACHE_RECLAIMABLE] = "reclaim_account",
    [CACHE_BY_RCU] = "destroy_by_rcu",
};

struct folders {
    struct VEC(struct memory_cache) all; /* named by their folders */
    struct map index, by_link;           /* a folder's name, a link's name -> index into all */
    struct slab_links links;
};

/* Cuts "CACHE\tATTRIBUTE\tVALUE" in place. Returns false for another line. */
static bool cut(char *line, char **attribute, char **value)
{
    *attribute = strchr(line, '\t');
    *value = *attribute ? strchr(*attribute + 1, '\t') : NULL;
    if (!*value || *attribute == line)
        return false;
    *(*attribute)++ = '\0';
    *(*value)++ = '\0';
    return true;
}

static struct memory_cache *folder_of(struct folders *f, const char *name)
{
    bool added;
    const size_t i = map_put(&f->index, name, strlen(name), f->all.len, &added);
    if (added)
        vec_push(&f->all)->name = mem_strdup(name);
    return &f->all.at[i];
}

static void take_attribute(struct memory_cache *c, const char *attribute, const char *value)
{
    uint64_t number;
    for (unsigned v = 0; v < CACHE_VALUES; v++) {
        const char *at = value;
        if (strcmp(attribute, attribute_names[v]))
            continue;
        /* "136(13) C0=73(7)": the kernel knows the slabs, and takes half of their objects to be free */
        if (v == CACHE_CPU_PARTIAL_SLABS) {
            at = strchr(value, '(');
            at = at ? at + 1 : "";
        }
        if (proc_text_number(&at, &number))
            memory_cache_set(c, v, number);
    }
}

static void read_attributes(struct memory_state *s, struct folders *f, const char *text)
{
    char line[PROC_TEXT_BYTES], *attribute, *value;
    while (proc_text_next(&text, line)) {
        if (!cut(line, &attribute, &value)) {
            s->bad_lines++;
        } else if (!strcmp(attribute, "->")) {
            struct slab_link *l = vec_push(&f->links);
            snprintf(l->name, sizeof(l->name), "%.*s", SLAB_NAME_BYTES - 1, line);
            snprintf(l->unique, sizeof(l->unique), "%.*s", SLAB_NAME_BYTES - 1, value);
        } else {
            take_attribute(folder_of(f, line), attribute, value);
        }
    }
}

static char *join(const char *const *names, size_t n)
{
    struct buf b = BUF_INIT;
    for (size_t i = 0; i < n; i++)
        buf_printf(&b, "%s%s", i ? " " : "", names[i]);
    return n ? buf_detach(&b) : NULL;
}

static unsigned order_of(uint64_t pages)
{
    unsigned order = 0;
    while (order < MEMORY_ORDERS_MAX && UINT64_C(1) << order < pages)
        order++;
    return order;
}

/* Slabinfo counts the same things; the folder's values, where there are any, were read together. */
static void take_row(struct memory_cache *c, const struct slab_cache *row)
{
    memory_cache_set(c, CACHE_STRIDE_BYTES, row->stride_bytes);
    memory_cache_set(c, CACHE_PER_SLAB, row->objects_per_slab);
    memory_cache_set(c, CACHE_ORDER, order_of(row->pages_per_slab));
    memory_cache_set(c, CACHE_SLABS, row->slabs);
    memory_cache_set(c, CACHE_ROOM, row->objects);
    memory_cache_set(c, CACHE_USED, row->active);
}

static void overwrite(struct memory_cache *c, const struct memory_cache *folder)
{
    for (unsigned v = 0; v < CACHE_VALUES; v++)
        if (memory_cache_has(folder, v))
            memory_cache_set(c, v, folder->at[v]);
}

/* Returns the number of the folder that a cache's name leads to, or MAP_NONE. */
static size_t find_folder(const struct folders *f, const char *name)
{
    const size_t i = map_get(&f->index, name, strlen(name));
    return i == MAP_NONE ? map_get(&f->by_link, name, strlen(name)) : i;
}

static uint64_t slab_pages(const struct slab_cache *row)
{
    uint64_t pages;
    return __builtin_mul_overflow(row->slabs, row->pages_per_slab, &pages) || pages > UINT32_MAX ? 0 : pages;
}

static void add_rows(struct memory_state *s, const struct slab_caches *rows, const struct folders *f,
                     bool *taken)
{
    vec_each (const struct slab_cache, row, &rows->all) {
        struct memory_cache *c = vec_push(&s->caches);
        const size_t i = find_folder(f, row->name);
        c->name = mem_strdup(row->name);
        c->aliases = join(row->aliases, row->aliases_len);
        take_row(c, row);
        s->slabinfo_pages += slab_pages(row);
        if (i == MAP_NONE)
            continue;
        overwrite(c, &f->all.at[i]);
        taken[i] = true;
    }
}

/* Folders without a row: slabinfo could not be read. The first link to one names it, if there is any. */
static void add_folders(struct memory_state *s, const struct folders *f, const bool *taken)
{
    struct buf *aliases = mem_array(f->all.len + 1, sizeof(*aliases));
    const char **names = mem_array(f->all.len + 1, sizeof(*names));
    vec_each (const struct slab_link, l, &f->links) {
        const size_t i = map_get(&f->index, l->unique, strlen(l->unique));
        if (i != MAP_NONE && names[i])
            buf_printf(&aliases[i], "%s%s", aliases[i].len ? " " : "", l->name);
        else if (i != MAP_NONE)
            names[i] = l->name;
    }
    for (size_t i = 0; i < f->all.len; i++) {
        if (!taken[i]) {
            struct memory_cache *c = vec_push(&s->caches);
            c->name = mem_strdup(names[i] ? names[i] : f->all.at[i].name);
            c->aliases = aliases[i].len ? mem_strdup(buf_str(&aliases[i])) : NULL;
            overwrite(c, &f->all.at[i]);
        }
        buf_release(&aliases[i]);
    }
    free(aliases);
    free(names);
}

void slab_state_parse(struct memory_state *s, const char *slabinfo, const char *attributes)
{
    struct folders f = {.all = {0}};
    struct slab_caches rows = {.bad_lines = 0};
    s->slab_attributes = attributes != NULL;
    if (attributes)
        read_attributes(s, &f, attributes);
    if (slabinfo && slab_parse(&rows, slabinfo))
        s->bad_lines++;
    slab_add_links(&rows, &f.links);
    vec_each (const struct slab_link, l, &f.links) {
        const size_t i = map_get(&f.index, l->unique, strlen(l->unique));
        if (i != MAP_NONE)
            map_put(&f.by_link, l->name, strlen(l->name), i, NULL);
    }
    s->bad_lines += rows.bad_lines;
    bool *taken = mem_array(f.all.len + 1, sizeof(*taken));
    add_rows(s, &rows, &f, taken);
    add_folders(s, &f, taken);
    free(taken);
    slab_release(&rows);
    vec_each (struct memory_cache, c, &f.all)
        free(c->name);
    vec_release(&f.all);
    vec_release(&f.links);
    map_release(&f.index);
    map_release(&f.by_link);
}
