/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/sys/frag/frag_rows.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/hash_map.h"
#include "base/sigsafe/clock_ns.h"
#include "collect/kernel/state/memory_parse.h"
#include "model/kernel/frag_tables.h"
#include "store/profile_load.h"
#include "sys/record/capture_frag.h"
#include "sys/tool.h"

#define ROWS_NAME      "sys_frag_sites"
#define FALLBACKS_NAME "sys_frag_fallbacks"

static int put_fallbacks(struct recording *r, const struct kernel_capture *c, struct error *e)
{
    struct table *t = frag_fallbacks_table();
    kernel_capture_add_fallbacks(c, t);
    int bad = recording_put_rows(r, FALLBACKS_NAME, t, clock_ns(CLOCK_REALTIME), e);
    table_free(t);
    return bad;
}

int frag_rows_put(struct recording *r, const struct kernel_capture *c, const struct kernel_state *state,
                  struct error *e)
{
    struct memory_state memory;
    struct table *t = frag_sites_table();
    memory_parse_state(&memory, state, c->page_bytes);
    kernel_capture_add_frag(c, &memory, false, t);
    int bad = recording_put_rows(r, ROWS_NAME, t, clock_ns(CLOCK_REALTIME), e);
    memory_state_release(&memory);
    table_free(t);
    return bad || !c->pages ? bad : put_fallbacks(r, c, e);
}

/* Rows of one time: those of the end are the ones that count. */
struct load {
    struct table *rows, *last;
};

static void take_rows(void *arg, uint64_t time_ns)
{
    struct load *l = arg;
    (void)time_ns;
    table_clear(l->last);
    table_move_rows(l->last, l->rows);
}

static uint32_t column_of(const struct table *t, const char *name)
{
    uint32_t i = 0;
    while (strcmp(t->columns[i].name, name) != 0)
        i++;
    return i;
}

static const struct {
    const char *name; /* in tables of sys kmem */
    enum frag_site_column to;
} kmem_columns[] = {
    {"call_site", FRAG_SITE},
    {"file", FRAG_SITE_FILE},
    {"cache", FRAG_SITE_CACHE},
    {"live", FRAG_SITE_LIVE},
    {"live_objects", FRAG_SITE_LIVE_OBJECTS},
    {"slack", FRAG_SITE_SLACK},
    {"allocated", FRAG_SITE_ALLOCATED},
};

/* A row of sys kmem is of a program and of flags, too: those of one call and cache are added up. */
static void add_kmem_row(struct table *sites, struct map *index, const struct table *kmem, uint32_t row)
{
    struct buf key = BUF_INIT;
    const struct table_value *values[sizeof(kmem_columns) / sizeof(*kmem_columns)];
    for (size_t i = 0; i < sizeof(kmem_columns) / sizeof(*kmem_columns); i++) {
        values[i] = table_at(kmem, row, column_of(kmem, kmem_columns[i].name));
        if (values[i]->known && sites->columns[kmem_columns[i].to].type == TABLE_TEXT)
            buf_printf(&key, "%zu %s\n", i, values[i]->text);
    }
    bool added;
    const size_t site = map_put(index, buf_str(&key), key.len, table_rows(sites), &added);
    if (added)
        table_row(sites);
    for (size_t i = 0; i < sizeof(kmem_columns) / sizeof(*kmem_columns); i++) {
        const enum frag_site_column to = kmem_columns[i].to;
        struct table_value *sum = &sites->values.at[site * sites->n_columns + to];
        if (values[i]->known && sites->columns[to].type != TABLE_TEXT)
            *sum = (struct table_value){.known = true,
                                        .whole = values[i]->whole + (sum->known ? sum->whole : 0)};
        else if (values[i]->known && added)
            table_text(sites, to, values[i]->text);
    }
    buf_release(&key);
}

static int load_kmem(struct table *sites, const char *path, struct error *e)
{
    const struct sys_tool *tool = sys_tool_find("kmem");
    struct load l = {table_new("sys", 1, tool->columns, tool->n_columns),
                     table_new("sys", 1, tool->columns, tool->n_columns)};
    int bad = recording_load_rows(path, "sys_kmem", l.rows, take_rows, &l, e);
    struct map index = {0};
    for (uint32_t i = 0; i < table_rows(l.last) && !bad; i++)
        add_kmem_row(sites, &index, l.last, i);
    map_release(&index);
    table_free(l.rows);
    table_free(l.last);
    return bad;
}

int frag_rows_load(struct table *sites, const char *path, struct error *e)
{
    struct load l = {frag_sites_table(), sites};
    int bad = recording_load_rows(path, ROWS_NAME, l.rows, take_rows, &l, e);
    table_free(l.rows);
    bad = bad == -ENODATA ? load_kmem(sites, path, e) : bad;
    frag_sites_sort(sites);
    return bad;
}

int frag_rows_load_fallbacks(struct table *fallbacks, const char *path, struct error *e)
{
    struct load l = {frag_fallbacks_table(), fallbacks};
    int bad = recording_load_rows(path, FALLBACKS_NAME, l.rows, take_rows, &l, e);
    table_free(l.rows);
    return bad;
}
