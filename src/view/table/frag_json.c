/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/kernel/frag_tables.h"
#include "view/formats/json.h"
#include "view/table/frag_view.h"
#include "view/table/table_view.h"

const struct frag_compaction_name frag_compaction_names[FRAG_COMPACTION_FIGURES] = {
    {MEMORY_COMPACT_STALLS, "stalls"},
    {MEMORY_COMPACT_DONE, "succeeded"},
    {MEMORY_COMPACT_FAILED, "failed"},
    {MEMORY_COMPACT_DAEMON_WAKES, "kcompactd_wakes"},
    {MEMORY_COMPACT_MIGRATE_SCANNED, "migrate_scanned_pages"},
    {MEMORY_COMPACT_FREE_SCANNED, "free_scanned_pages"},
    {MEMORY_COMPACT_ISOLATED, "isolated_pages"},
    {MEMORY_HUGE_FAULTS, "huge_page_faults"},
    {MEMORY_HUGE_FAILED, "huge_page_fallbacks"},
    {MEMORY_ALLOCATION_STALLS, "reclaim_stalls"},
};

bool frag_compaction(const struct frag_report *r, enum memory_figure f, uint64_t *count)
{
    const struct memory_state *now = r->frag->of;
    if (!memory_state_has(now, f) || (r->before && !memory_state_has(r->before, f)))
        return false;
    const uint64_t before = r->before ? r->before->figures[f] : 0;
    *count = now->figures[f] > before ? now->figures[f] - before : 0;
    return true;
}

static void write_known(struct json *j, const char *key, const struct frag_range *r, bool low)
{
    if (r->known)
        json_whole(j, key, low ? r->low : r->high);
    else
        json_null(j, key);
}

static void write_slab(struct json *j, const struct frag *f)
{
    static const struct {
        const char *key;
        enum frag_slab_part part;
        bool low;
    } parts[] = {
        {"slab_bytes", FRAG_BYTES, false},
        {"objects_bytes", FRAG_OBJECTS, false},
        {"free_bytes", FRAG_FREE, false},
        {"padding_bytes", FRAG_PADDING, false},
        {"tails_bytes", FRAG_TAILS, false},
        {"cpu_free_low_bytes", FRAG_CPU_FREE, true},
        {"cpu_free_high_bytes", FRAG_CPU_FREE, false},
        {"sheaf_free_high_bytes", FRAG_SHEAF_FREE, false},
        {"shrink_low_bytes", FRAG_SHRINK, true},
        {"shrink_high_bytes", FRAG_SHRINK, false},
    };
    json_open(j, "slab", '{');
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
        write_known(j, parts[i].key, &f->slab[parts[i].part], parts[i].low);
    write_known(j, "lost_bytes", &f->slab_lost, false);
    json_close(j, '}');
}

static void write_capture(struct json *j, const struct frag_report *r)
{
    static const struct {
        const char *key;
        enum frag_site_column column;
    } sums[] = {
        {"live_slack_bytes", FRAG_SITE_LIVE_SLACK}, {"live_bytes", FRAG_SITE_LIVE},
        {"slack_bytes", FRAG_SITE_SLACK},           {"allocated_bytes", FRAG_SITE_ALLOCATED},
        {"pinned_low_bytes", FRAG_SITE_PINNED_LOW}, {"pinned_high_bytes", FRAG_SITE_PINNED_HIGH},
    };
    if (!r->sites) {
        json_null(j, "capture");
        return;
    }
    json_open(j, "capture", '{');
    for (size_t i = 0; i < sizeof(sums) / sizeof(*sums); i++) {
        bool known;
        const uint64_t sum = frag_column_sum(r->sites, sums[i].column, &known);
        if (known)
            json_whole(j, sums[i].key, sum);
        else
            json_null(j, sums[i].key);
    }
    json_whole(j, "lost_events", r->lost);
    json_close(j, '}');
}

static void write_compaction(struct json *j, const struct frag_report *r)
{
    uint64_t count;
    json_open(j, "compaction", '{');
    for (int i = 0; i < FRAG_COMPACTION_FIGURES; i++) {
        if (frag_compaction(r, frag_compaction_names[i].figure, &count))
            json_whole(j, frag_compaction_names[i].key, count);
        else
            json_null(j, frag_compaction_names[i].key);
    }
    json_close(j, '}');
}

static void write_vmalloc(struct json *j, const struct frag *f)
{
    const struct frag_vmalloc *v = &f->vmalloc;
    json_open(j, "vmalloc", '{');
    if (f->of->areas_known) {
        json_whole(j, "areas", v->areas);
        json_whole(j, "addresses_bytes", v->bytes);
        json_whole(j, "unpurged_bytes", v->unpurged_bytes);
    } else {
        json_null(j, "areas");
        json_null(j, "addresses_bytes");
        json_null(j, "unpurged_bytes");
    }
    write_known(j, "pages_bytes", &v->pages_bytes, false);
    if (v->holes_bytes.known)
        json_whole(j, "holes", v->holes);
    else
        json_null(j, "holes");
    write_known(j, "holes_bytes", &v->holes_bytes, false);
    write_known(j, "largest_hole_bytes", &v->largest_hole_bytes, false);
    json_close(j, '}');
}

static void write_check(struct json *j, const struct frag_whole *w)
{
    json_open(j, "check", '{');
    write_known(j, "slab_bytes", &w->slab_bytes, false);
    write_known(j, "large_kmalloc_bytes", &w->large_bytes, false);
    write_known(j, "meminfo_slab_bytes", &w->meminfo_bytes, false);
    if (w->slab_bytes.known && w->meminfo_bytes.known)
        json_signed(j, "rest_bytes", w->rest_bytes);
    else
        json_null(j, "rest_bytes");
    if (w->rest_max_bytes)
        json_whole(j, "counters_bytes", w->rest_max_bytes);
    else
        json_null(j, "counters_bytes");
    json_close(j, '}');
}

static void write_table(struct json *j, struct table *t, uint32_t top)
{
    if (top && table_rows(t) > top)
        table_cut(t, top);
    table_view_json_rows(j, t->name, t);
    table_free(t);
}

static void write_fallbacks(struct json *j, const struct frag_report *r)
{
    if (!r->fallbacks) {
        json_null(j, "fallbacks");
        return;
    }
    struct table *t = frag_fallbacks_table();
    table_copy_rows(t, r->fallbacks);
    write_table(j, t, r->top);
}

static struct table *copy_of(const struct table *sites)
{
    struct table *t = frag_sites_table();
    if (sites)
        table_copy_rows(t, sites);
    return t;
}

void frag_json_write(struct sink *out, const struct frag_report *r)
{
    struct json j = {.out = out, .line = true};
    const struct frag *f = r->frag;
    struct table *sites = copy_of(r->sites);
    json_open(&j, NULL, '{');
    json_text(&j, "schema", "allium-sys-frag");
    json_whole(&j, "version", 1);
    json_instant(&j, "time_ns", r->taken_ns);
    json_text(&j, "source", r->recorded ? "recording" : r->sites ? "capture" : "live");
    if (r->before)
        json_whole(&j, "interval_ns", r->interval_ns);
    else
        json_null(&j, "interval_ns");
    json_whole(&j, "page_bytes", f->of->page_bytes);
    write_slab(&j, f);
    write_capture(&j, r);
    write_compaction(&j, r);
    write_vmalloc(&j, f);
    write_check(&j, &f->whole);
    json_whole(&j, "malformed_lines", f->of->bad_lines);
    write_table(&j, frag_caches_table(f), r->top);
    write_table(&j, frag_buckets_table(sites), r->top);
    write_table(&j, sites, r->top);
    write_table(&j, frag_orders_table(f), 0);
    write_table(&j, frag_types_table(f), 0);
    write_fallbacks(&j, r);
    write_table(&j, frag_callers_table(f), r->top);
    json_close(&j, '}');
}
