/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/page/html_profile.h"

#include <stdlib.h>

#include "base/vec.h"
#include "model/profile/moments.h"
#include "view/page/html_cells.h"

enum { FRAME_INLINED = 1, FRAME_WRAPPER = 2, FRAME_PROCESS = 4, FRAME_MARKER = 8, FRAME_NAMELESS = 16 };

static const char *const metric_keys[ROLLUP_METRICS] = {"live", "peak", "allocated", "temporary"};

/* ---- estimates, each member as a column ---- */

enum part {
    SAMPLES,
    EXACT,
    VALUE,
    SEEN,
    VARIANCE,
    GRAIN,
    LOG_WEIGHT,
    NEXT_MEAN,
    NEXT_VARIANCE,
    FIRST_MEAN,
    FIRST_VARIANCE,
    SMALLEST,
    LARGEST,
    PARTS
};

/* `same`: the earlier part that it is equal to where nothing is estimated; PARTS: none. */
static const struct {
    const char *key;
    enum part same;
} parts[PARTS] = {
    [SAMPLES] = {"samples", PARTS},
    [EXACT] = {"exact", SAMPLES},
    [VALUE] = {"value", PARTS},
    [SEEN] = {"seen", VALUE},
    [VARIANCE] = {"variance", PARTS},
    [GRAIN] = {"grain", PARTS},
    [LOG_WEIGHT] = {"log_weight", PARTS},
    [NEXT_MEAN] = {"next_mean", PARTS},
    [NEXT_VARIANCE] = {"next_variance", PARTS},
    [FIRST_MEAN] = {"first_mean", PARTS},
    [FIRST_VARIANCE] = {"first_variance", PARTS},
    [SMALLEST] = {"smallest", PARTS},
    [LARGEST] = {"largest", PARTS},
};

/* Puts the members of one estimate into row `i` of the columns. */
static void put_parts(double *const columns[static PARTS], size_t i, const struct estimate *e)
{
    columns[SAMPLES][i] = (double)e->samples;
    columns[EXACT][i] = (double)e->exact;
    columns[VALUE][i] = e->value;
    columns[SEEN][i] = e->seen;
    columns[VARIANCE][i] = e->variance;
    columns[GRAIN][i] = e->grain;
    columns[LOG_WEIGHT][i] = e->log_weight;
    columns[NEXT_MEAN][i] = e->next.mean;
    columns[NEXT_VARIANCE][i] = e->next.variance;
    columns[FIRST_MEAN][i] = e->first.mean;
    columns[FIRST_VARIANCE][i] = e->first.variance;
    columns[SMALLEST][i] = e->smallest;
    columns[LARGEST][i] = e->largest;
}

static const struct estimate *estimate_of(const struct rollup_values *v, enum rollup_metric m, bool count)
{
    return count ? &v->of[m].count : &v->of[m].bytes;
}

/* The rows whose estimates are not made of cells: a [rest]; all, if single samples were selected. */
struct sums {
    struct VEC(uint32_t) rows;
};

static void add_estimates(struct page_blob *b, const char *key, const struct call_tree *t,
                          const struct sums *s, enum rollup_metric m, bool count)
{
    const size_t n = s->rows.len;
    double *columns[PARTS] = {NULL};
    size_t at[PARTS];
    for (enum part k = 0; k < PARTS; k++)
        columns[k] = mem_array(n + 1, sizeof(double));
    for (size_t i = 0; i < n; i++)
        put_parts(columns, i, estimate_of(t->rows.at[s->rows.at[i]].values, m, count));
    json_open(&b->json, key, '{');
    for (enum part k = 0; k < PARTS; k++) {
        const enum part same = parts[k].same;
        at[k] = page_blob_add_f64(b, parts[k].key, columns[k], n, same < PARTS ? columns[same] : NULL,
                                  same < PARTS ? at[same] : 0);
    }
    for (enum part k = 0; k < PARTS; k++)
        free(columns[k]);
    json_close(&b->json, '}');
}

static void add_total(struct page_blob *b, const char *key, const struct estimate *e)
{
    const struct interval i = estimate_interval(e);
    json_open(&b->json, key, '{');
    json_real(&b->json, "value", e->value);
    json_real(&b->json, "low", i.low);
    json_real(&b->json, "high", i.high);
    json_close(&b->json, '}');
}

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
                        const struct sums *s, const struct rollup_values *total)
{
    struct estimate bytes = {0}, count = {0};
    find_nothing(&bytes, &count, p);
    json_open(&b->json, "nothing", '{');
    add_nothing(b, "bytes", &bytes);
    add_nothing(b, "count", &count);
    json_close(&b->json, '}');
    json_open(&b->json, "metrics", '[');
    for (enum rollup_metric m = 0; m < ROLLUP_METRICS; m++) {
        if (!rollup_known(total, m))
            continue;
        json_open(&b->json, NULL, '{');
        json_text(&b->json, "key", metric_keys[m]);
        json_open(&b->json, "total", '{');
        add_total(b, "bytes", &total->of[m].bytes);
        add_total(b, "count", &total->of[m].count);
        json_close(&b->json, '}');
        add_estimates(b, "bytes", t, s, m, false);
        add_estimates(b, "count", t, s, m, true);
        json_close(&b->json, '}');
    }
    json_close(&b->json, ']');
}

/* `single`: single samples were selected, so that the sums of cells are not the rows'. */
static void add_values(struct page_blob *b, const struct call_tree *t, const struct profile *p, bool single,
                       const struct rollup_values *total)
{
    struct sums s = {.rows = {0}};
    for (uint32_t i = 0; i < t->rows.len; i++)
        if (single || call_tree_is_rest(t, t->rows.at[i].at.node))
            *vec_push(&s.rows) = i;
    page_blob_add_u32(b, "sums_row", s.rows.at, s.rows.len);
    add_metrics(b, t, p, &s, total);
    if (!single)
        html_cells_add(b, t, p);
    vec_release(&s.rows);
}

/* ---- the tree ---- */

static void add_frames(struct page_blob *b, const struct call_tree *t)
{
    const size_t n = t->frames.len;
    enum { FUNCTION, MODULE, SOURCE_FILE, FLAGS, COLUMNS };
    static const char *const keys[COLUMNS] = {"function", "module", "file", "flags"};
    uint32_t *all = mem_array(n * COLUMNS + 1, sizeof(*all));
    for (size_t i = 0; i < n; i++) {
        const struct call_tree_frame *f = &t->frames.at[i];
        all[FUNCTION * n + i] = f->function;
        all[MODULE * n + i] = f->module;
        all[SOURCE_FILE * n + i] = f->file;
        all[FLAGS * n + i] = (f->inlined ? FRAME_INLINED : 0) | (f->wrapper ? FRAME_WRAPPER : 0) |
                             (f->kind == CALL_TREE_PROCESS ? FRAME_PROCESS : 0) |
                             (f->kind == CALL_TREE_MARKER ? FRAME_MARKER : 0) |
                             (f->nameless ? FRAME_NAMELESS : 0);
    }
    json_open(&b->json, "frames", '{');
    for (size_t k = 0; k < COLUMNS; k++)
        page_blob_add_u32(b, keys[k], all + k * n, n);
    json_close(&b->json, '}');
    free(all);
}

/* Depths in place of parents: they compress better. */
static void add_nodes(struct page_blob *b, const struct call_tree *t)
{
    const size_t n = t->nodes.len;
    uint32_t *depth = mem_array(n, sizeof(*depth)), *frame = mem_array(n, sizeof(*frame)),
             *line = mem_array(n, sizeof(*line));
    for (size_t i = 1; i < n; i++) {
        const struct call_tree_node *node = &t->nodes.at[i];
        depth[i] = depth[node->parent] + 1;
        frame[i] = node->frame;
        line[i] = node->line;
    }
    json_open(&b->json, "nodes", '{');
    page_blob_add_u32(b, "depth", depth, n);
    page_blob_add_u32(b, "frame", frame, n);
    page_blob_add_u32(b, "line", line, n);
    json_close(&b->json, '}');
    free(depth);
    free(frame);
    free(line);
}

static void add_rows(struct page_blob *b, const struct call_tree *t)
{
    const size_t n = t->rows.len;
    enum { NODE, SITE, OWNER, LINE, COLUMNS };
    static const char *const keys[COLUMNS] = {"row_node", "row_site", "row_owner", "row_line"};
    uint32_t *all = mem_array(n * COLUMNS + 1, sizeof(*all));
    double *oldest = mem_array(n + 1, sizeof(*oldest));
    for (size_t i = 0; i < n; i++) {
        const struct call_tree_place *at = &t->rows.at[i].at;
        all[NODE * n + i] = at->node;
        all[SITE * n + i] = at->site;
        all[OWNER * n + i] = at->owner;
        all[LINE * n + i] = at->line;
        oldest[i] = (double)t->rows.at[i].values->oldest_ns;
    }
    for (size_t k = 0; k < COLUMNS; k++)
        page_blob_add_u32(b, keys[k], all + k * n, n);
    page_blob_add_f64(b, "row_oldest_ns", oldest, n, NULL, 0);
    free(all);
    free(oldest);
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

void html_profile_add(struct page_blob *b, const struct call_tree *t, const struct profile *p,
                      const struct rollup_options *like, uint32_t stride)
{
    struct rollup_options o = *like;
    o.group = ROLLUP_BY_PROCESS; /* whose total is that of all stacks */
    struct rollup *all = rollup_new(p, &o);
    json_open(&b->json, "profile", '{');
    page_blob_add_texts(b, "strings", t->strings.at, t->strings.len);
    add_frames(b, t);
    add_nodes(b, t);
    add_rows(b, t);
    add_values(b, t, p, like->keep_sample != NULL, &all->total);
    add_images(b, p);
    if (p->started_ns)
        json_real(&b->json, "started_ms", (double)p->started_ns / 1e6);
    if (!like->keep && !like->keep_sample)
        add_points(b, p);
    if (stride)
        html_moments_add(b, t, p, stride);
    json_close(&b->json, '}');
    rollup_free(all);
}
