/* SPDX-License-Identifier: BSD-2-Clause */
/* How large the live objects of kmalloc() are, by call. Objects of other caches all have the size of their cache. */
#include "sys/record/kernel_capture.h"

#include <string.h>

#include "sys/record/capture_site.h"

static const struct table_column columns[SIZE_COLUMNS] = {
    [SIZE_CALL] = {"call_site", TABLE_PLAIN, TABLE_TEXT},
    [SIZE_FILE] = {"file", TABLE_PLAIN, TABLE_TEXT},
    [SIZE_PAGES] = {"pages", TABLE_PLAIN, TABLE_FLAG},
    [SIZE_REQUESTED] = {"requested", TABLE_BYTES, TABLE_WHOLE},
    [SIZE_ALLOCATED] = {"allocated", TABLE_BYTES, TABLE_WHOLE},
    [SIZE_OBJECTS] = {"live_objects", TABLE_COUNT, TABLE_WHOLE},
};

/* Without padding, since it is a key. */
struct size {
    uint64_t call, requested_bytes, allocated_bytes;
    uint32_t inlined, is_helper; /* see struct capture_site */
    uint64_t pages;              /* a flag */
};

struct sizes {
    const struct kmem_accounts *accounts;
    const struct kmem_account *rows;
    struct VEC(struct size) all;
    struct VEC(uint64_t) objects;
    struct map index;
    struct capture_sites sites;
};

static void add_object(void *arg, const struct kmem_object *o)
{
    struct sizes *s = arg;
    const struct kmem_account *row = &s->rows[o->row];
    const char *cache = kmem_accounts_text(s->accounts, row->cache);
    const bool pages = !strcmp(cache, "(pages)");
    if (!pages && strncmp(cache, "(kmalloc ", 9) != 0 && strncmp(cache, "kmalloc-", 8) != 0)
        return;
    const struct capture_site site = capture_site_find(&s->sites, row->call_site, row->stack);
    const struct size size = {.call = site.call,
                              .requested_bytes = o->requested_bytes,
                              .allocated_bytes = o->allocated_bytes,
                              .inlined = site.inlined,
                              .is_helper = site.is_helper,
                              .pages = pages};
    bool added;
    const size_t i = map_put(&s->index, &size, sizeof(size), s->all.len, &added);
    if (added) {
        *vec_push(&s->all) = size;
        *vec_push(&s->objects) = 0;
    }
    s->objects.at[i]++;
}

struct table *kernel_capture_sizes(void)
{
    return table_new("sys-kmem-sizes", 1, columns, SIZE_COLUMNS);
}

static void put_size(const struct kernel_capture *c, const struct size *size, uint64_t objects,
                     struct table *t)
{
    const struct capture_site site = {size->call, size->inlined, size->is_helper};
    table_row(t);
    capture_site_put(t, SIZE_CALL, c, &site, capture_site_add_call);
    if (c->names.add_file)
        capture_site_put(t, SIZE_FILE, c, &site, capture_site_add_file);
    table_flag(t, SIZE_PAGES, size->pages);
    table_whole(t, SIZE_REQUESTED, size->requested_bytes);
    table_whole(t, SIZE_ALLOCATED, size->allocated_bytes);
    table_whole(t, SIZE_OBJECTS, objects);
}

void kernel_capture_add_sizes(const struct kernel_capture *c, struct table *t)
{
    struct sizes s = {.accounts = c->accounts, .sites = {.capture = c}};
    size_t n_rows;
    s.rows = kmem_accounts_rows(c->accounts, &n_rows);
    kmem_accounts_each_live(c->accounts, add_object, &s);
    t->hidden = c->names.add_file ? 0 : UINT64_C(1) << SIZE_FILE;
    for (size_t i = 0; i < s.all.len; i++)
        put_size(c, &s.all.at[i], s.objects.at[i], t);
    capture_sites_release(&s.sites);
    vec_release(&s.all);
    vec_release(&s.objects);
    map_release(&s.index);
}
