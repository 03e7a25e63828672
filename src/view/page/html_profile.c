/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/page/html_profile.h"

#include <stdlib.h>

#include "base/vec.h"
#include "model/profile/figure_bounds.h"
#include "model/profile/moments.h"
#include "view/page/html_cells.h"
#include "view/page/html_tree.h"

static const struct {
    enum rollup_metric metric;
    const char *key;
    bool counts; /* objects, too */
} metrics[] = {
    {ROLLUP_LIVE, "live", true},           {ROLLUP_PEAK, "peak", true},
    {ROLLUP_ALLOCATED, "allocated", true}, {ROLLUP_TEMPORARY, "temporary", true},
    {ROLLUP_REQUESTED, "requested"},       {ROLLUP_SLACK, "slack"},
};
#define N_METRICS (sizeof(metrics) / sizeof(*metrics))

/* What any code may have allocated unseen, at the periods of the profile: part of each row's estimate. */
static void add_nothing(struct page_blob *b, const char *key, const struct estimate *first)
{
    json_open(&b->json, key, '{');
    json_real(&b->json, "first_mean", first->first.mean);
    json_real(&b->json, "first_variance", first->first.variance);
    json_real(&b->json, "next_mean", first->next.mean);
    json_real(&b->json, "next_variance", first->next.variance);
    json_close(&b->json, '}');
}

static void find_nothing(struct estimate *bytes, struct estimate *count, const struct profile *p)
{
    uint64_t last = UINT64_MAX;
    const struct profile_sums none = {.samples = 0};
    vec_each (const struct profile_cell, c, &p->cells) {
        if (c->period_bytes != last)
            profile_estimate(bytes, count, c, &none);
        last = c->period_bytes;
    }
}

static void add_metrics(struct page_blob *b, const struct call_tree *t, const struct profile *p,
                        const struct html_rows *s, const struct rollup_values *total)
{
    struct estimate bytes = {0}, count = {0};
    find_nothing(&bytes, &count, p);
    json_open(&b->json, "nothing", '{');
    add_nothing(b, "bytes", &bytes);
    add_nothing(b, "count", &count);
    json_close(&b->json, '}');
    json_open(&b->json, "metrics", '[');
    for (size_t i = 0; i < N_METRICS; i++) {
        const enum rollup_metric m = metrics[i].metric;
        if (!rollup_known(total, m))
            continue;
        const struct rollup_value v = rollup_value_of(total, m);
        json_open(&b->json, NULL, '{');
        json_text(&b->json, "key", metrics[i].key);
        if (figure_bounds_of(p, m))
            json_flag(&b->json, "bound", true);
        json_open(&b->json, "total", '{');
        html_tree_add_total(b, "bytes", &v.bytes);
        if (metrics[i].counts)
            html_tree_add_total(b, "count", &v.count);
        json_close(&b->json, '}');
        html_tree_add_estimates(b, "bytes", t, s, m, false);
        if (metrics[i].counts)
            html_tree_add_estimates(b, "count", t, s, m, true);
        json_close(&b->json, '}');
    }
    json_close(&b->json, ']');
}

/* `single`: single samples were selected, so that the sums of cells are not the rows'. */
static void add_values(struct page_blob *b, const struct call_tree *t, const struct profile *p, bool single,
                       const struct rollup_values *total)
{
    struct html_rows s = {0};
    for (uint32_t i = 0; i < t->rows.len; i++)
        if (single || call_tree_is_rest(t, t->rows.at[i].at.node))
            *vec_push(&s) = i;
    page_blob_add_u32(b, "sums_row", s.at, s.len);
    add_metrics(b, t, p, &s, total);
    if (!single)
        html_cells_add(b, t, p);
    vec_release(&s);
}

/* ---- time ---- */

static void add_points(struct page_blob *b, const struct profile *p)
{
    enum { IMAGE, TIME_MS, LIVE, ALLOCATED, RSS, COLUMNS };
    static const char *const keys[COLUMNS] = {"image", "time_ms", "live_bytes", "allocated_bytes",
                                              "rss_anon_bytes"};
    const size_t n = p->points.len;
    double *all = mem_array(n * COLUMNS + 1, sizeof(*all));
    for (size_t i = 0; i < n; i++) {
        const struct profile_point *at = &p->points.at[i];
        all[IMAGE * n + i] = at->image;
        all[TIME_MS * n + i] = (double)at->time_ns / 1e6;
        all[LIVE * n + i] = at->live_bytes;
        all[ALLOCATED * n + i] = at->allocated_bytes;
        all[RSS * n + i] = (double)at->rss_anon_bytes;
    }
    json_open(&b->json, "points", '{');
    for (size_t k = 0; k < COLUMNS; k++)
        page_blob_add_f64(b, keys[k], all + k * n, n, NULL, 0);
    json_close(&b->json, '}');
    free(all);
}

static void add_images(struct page_blob *b, const struct profile *p)
{
    json_open(&b->json, "images", '[');
    vec_each (const struct profile_image, i, &p->images) {
        json_open(&b->json, NULL, '{');
        json_text(&b->json, "program", profile_text(p, i->comm));
        json_signed(&b->json, "pid", i->pid);
        json_flag(&b->json, "ended", moments_image_ended(i));
        json_real(&b->json, "began_ms", (double)i->began_ns / 1e6);
        json_real(&b->json, "taken_ms", (double)i->taken_ns / 1e6);
        json_signed(&b->json, "signal", i->signal);
        json_real(&b->json, "peak_ms", (double)i->peak_ns / 1e6);
        json_real(&b->json, "peak_bytes", i->peak_bytes);
        json_close(&b->json, '}');
    }
    json_close(&b->json, ']');
}

static void add_marks(struct page_blob *b, const struct profile *p)
{
    json_open(&b->json, "marks", '[');
    vec_each (const struct profile_mark, m, &p->marks) {
        json_open(&b->json, NULL, '{');
        json_real(&b->json, "time_ms", (double)m->time_ns / 1e6);
        json_text(&b->json, "text", profile_text(p, m->text));
        json_flag(&b->json, "bad", m->is_bad);
        json_close(&b->json, '}');
    }
    json_close(&b->json, ']');
}

void html_profile_add(struct page_blob *b, const struct call_tree *t, const struct profile *p,
                      const struct rollup_options *like, uint32_t stride)
{
    struct rollup_options o = *like;
    o.group = ROLLUP_BY_PROCESS; /* whose total is that of all stacks */
    struct rollup *all = rollup_new(p, &o);
    json_open(&b->json, "profile", '{');
    html_tree_add(b, t);
    add_values(b, t, p, like->keep_sample != NULL, &all->total);
    add_images(b, p);
    add_marks(b, p);
    if (p->started_ns)
        json_real(&b->json, "started_ms", (double)p->started_ns / 1e6);
    if (!like->keep && !like->keep_sample)
        add_points(b, p);
    if (stride)
        html_moments_add(b, t, p, stride);
    json_close(&b->json, '}');
    rollup_free(all);
}
