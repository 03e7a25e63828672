/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/record/capture_frag.h"

#include "model/kernel/frag_tables.h"
#include "sys/record/capture_site.h"

static void put_site(struct table *t, const struct kernel_capture *c, const struct frag_site *s)
{
    struct capture_sites sites = {.capture = c};
    const struct capture_site call = capture_site_find(&sites, s->call_site, KMEM_NO_STACK);
    const char *cache = kmem_accounts_text(c->accounts, s->cache);
    table_row(t);
    capture_site_put(t, FRAG_SITE, c, &call, capture_site_add_call);
    if (c->names.add_file)
        capture_site_put(t, FRAG_SITE_FILE, c, &call, capture_site_add_file);
    capture_sites_release(&sites);
    if (*cache)
        table_text(t, FRAG_SITE_CACHE, cache);
    if (s->pinned_bytes.known) {
        table_whole(t, FRAG_SITE_PINNED_LOW, s->pinned_bytes.low);
        table_whole(t, FRAG_SITE_PINNED_HIGH, s->pinned_bytes.high);
        table_whole(t, FRAG_SITE_HALF_EMPTY, s->half_empty_slabs);
    }
    table_whole(t, FRAG_SITE_LIVE_SLACK, s->live_slack_bytes);
    table_whole(t, FRAG_SITE_LIVE, s->live_bytes);
    table_whole(t, FRAG_SITE_LIVE_OBJECTS, s->live_objects);
    table_whole(t, FRAG_SITE_SLACK, s->slack_bytes);
    table_whole(t, FRAG_SITE_ALLOCATED, s->allocated_bytes);
}

/* Calls that only freed have no row. */
void kernel_capture_add_frag(const struct kernel_capture *c, const struct memory_state *s, bool follows_freed,
                             struct table *t)
{
    struct frag_sites sites;
    frag_sites_compute(&sites, c->accounts, s, follows_freed);
    vec_each (const struct frag_site, site, &sites.all)
        if (site->allocated_bytes)
            put_site(t, c, site);
    frag_sites_release(&sites);
    frag_sites_sort(t);
}

/* Rows that differ in flags and use are one. */
void kernel_capture_add_fallbacks(const struct kernel_capture *c, struct table *t)
{
    size_t n;
    struct map index = {0};
    const struct page_account *rows = page_accounts_rows(c->pages, &n);
    for (const struct page_account *a = rows; a < rows + n; a++) {
        const uint32_t key[] = {a->order, a->migrate_type, a->comm, a->stack};
        bool added;
        if (!a->fallbacks)
            continue;
        const size_t row = map_put(&index, key, sizeof(key), table_rows(t), &added);
        if (added) {
            table_row(t);
            kernel_capture_put_type(c, t, FRAG_FALLBACK_TYPE, a->migrate_type);
            table_whole(t, FRAG_FALLBACK_ORDER, a->order);
            table_text(t, FRAG_FALLBACK_COMM, page_accounts_text(c->pages, a->comm));
            kernel_capture_put_page_stack(c, t, FRAG_FALLBACK_STACK, a->stack);
        }
        struct table_value *sum = &t->values.at[row * t->n_columns + FRAG_FALLBACKS];
        *sum = (struct table_value){.known = true, .whole = (sum->known ? sum->whole : 0) + a->fallbacks};
    }
    map_release(&index);
    table_sort(t, FRAG_FALLBACKS, TABLE_MOST_FIRST);
}
