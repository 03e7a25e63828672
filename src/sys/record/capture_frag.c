/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/record/capture_frag.h"

#include "model/kernel/frag_tables.h"

static void put_site(struct table *t, const struct kernel_capture *c, const struct frag_site *s)
{
    const struct kernel_code_names *names = &c->names;
    const char *cache = kmem_accounts_text(c->accounts, s->cache);
    table_row(t);
    kernel_capture_put_name(t, FRAG_SITE, names->add_call, names->arg, s->call_site);
    if (names->add_file)
        kernel_capture_put_name(t, FRAG_SITE_FILE, names->add_file, names->arg, s->call_site);
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
