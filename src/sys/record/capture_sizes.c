/* SPDX-License-Identifier: BSD-2-Clause */
/* How large the live objects of kmalloc() are, by call. Objects of other caches all have the size of their cache. */
#include "sys/record/kernel_capture.h"

#include <string.h>

static const struct table_column columns[SIZE_COLUMNS] = {
    [SIZE_CALL] = {"call_site", TABLE_PLAIN, TABLE_TEXT},
    [SIZE_FILE] = {"file", TABLE_PLAIN, TABLE_TEXT},
    [SIZE_PAGES] = {"pages", TABLE_PLAIN, TABLE_FLAG},
    [SIZE_REQUESTED] = {"requested", TABLE_BYTES, TABLE_WHOLE},
    [SIZE_ALLOCATED] = {"allocated", TABLE_BYTES, TABLE_WHOLE},
    [SIZE_OBJECTS] = {"live_objects", TABLE_COUNT, TABLE_WHOLE},
};

struct size {
    uint64_t call_site, requested_bytes, allocated_bytes;
    uint64_t pages; /* a flag; without padding, since it is part of a key */
};

struct sizes {
    const struct kmem_accounts *accounts;
    const struct kmem_account *rows;
    struct VEC(struct size) all;
    struct VEC(uint64_t) objects;
    struct map index;
};

static void add_object(void *arg, const struct kmem_object *o)
{
    struct sizes *s = arg;
    const struct kmem_account *row = &s->rows[o->row];
    const char *cache = kmem_accounts_text(s->accounts, row->cache);
    const bool pages = !strcmp(cache, "(pages)");
    if (!pages && strncmp(cache, "(kmalloc ", 9) != 0 && strncmp(cache, "kmalloc-", 8) != 0)
        return;
    const struct size size = {row->call_site, o->requested_bytes, o->allocated_bytes, pages};
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

void kernel_capture_add_sizes(const struct kernel_capture *c, struct table *t)
{
    const struct kernel_code_names *names = &c->names;
    struct sizes s = {.accounts = c->accounts};
    size_t n_rows;
    s.rows = kmem_accounts_rows(c->accounts, &n_rows);
    kmem_accounts_each_live(c->accounts, add_object, &s);
    t->hidden = names->add_file ? 0 : UINT64_C(1) << SIZE_FILE;
    for (size_t i = 0; i < s.all.len; i++) {
        table_row(t);
        kernel_capture_put_name(t, SIZE_CALL, names->add_call, names->arg, s.all.at[i].call_site);
        if (names->add_file)
            kernel_capture_put_name(t, SIZE_FILE, names->add_file, names->arg, s.all.at[i].call_site);
        table_flag(t, SIZE_PAGES, s.all.at[i].pages);
        table_whole(t, SIZE_REQUESTED, s.all.at[i].requested_bytes);
        table_whole(t, SIZE_ALLOCATED, s.all.at[i].allocated_bytes);
        table_whole(t, SIZE_OBJECTS, s.objects.at[i]);
    }
    vec_release(&s.all);
    vec_release(&s.objects);
    map_release(&s.index);
}
