/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/page/html_profile.h"

#include <stdlib.h>

#include "base/vec.h"
#include "view/profile/profile_summary.h"

enum { FRAME_INLINED = 1, FRAME_WRAPPER = 2, FRAME_PROCESS = 4, FRAME_MARKER = 8 };

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

static void add_estimates(struct page_blob *b, const char *key, const struct call_tree *t,
                          enum rollup_metric m, bool count)
{
    double *columns[PARTS] = {NULL};
    size_t at[PARTS];
    for (enum part k = 0; k < PARTS; k++)
        columns[k] = mem_array(t->rows.len + 1, sizeof(double));
    for (size_t i = 0; i < t->rows.len; i++)
        put_parts(columns, i, estimate_of(t->rows.at[i].values, m, count));
    json_open(&b->json, key, '{');
    for (enum part k = 0; k < PARTS; k++) {
        const enum part same = parts[k].same;
        at[k] = page_blob_add_f64(b, parts[k].key, columns[k], t->rows.len,
                                  same < PARTS ? columns[same] : NULL, same < PARTS ? at[same] : 0);
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

static void add_metrics(struct page_blob *b, const struct call_tree *t, const struct rollup_values *total)
{
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
        add_estimates(b, "bytes", t, m, false);
        add_estimates(b, "count", t, m, true);
        json_close(&b->json, '}');
    }
    json_close(&b->json, ']');
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
                             (f->kind == CALL_TREE_MARKER ? FRAME_MARKER : 0);
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
    uint32_t *node = mem_array(n + 1, sizeof(*node)), *site = mem_array(n + 1, sizeof(*site)),
             *line = mem_array(n + 1, sizeof(*line));
    for (size_t i = 0; i < n; i++) {
        line[i] = t->rows.at[i].line;
        node[i] = t->rows.at[i].node;
        site[i] = t->rows.at[i].site;
    }
    page_blob_add_u32(b, "row_node", node, n);
    page_blob_add_u32(b, "row_site", site, n);
    page_blob_add_u32(b, "row_line", line, n);
    free(line);
    free(node);
    free(site);
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

bool html_profile_image_ended(const struct profile_image *i)
{
    return !i->past && (i->state == PROFILE_IMAGE_EXITED || i->state == PROFILE_IMAGE_ENDED);
}

static void add_images(struct page_blob *b, const struct profile *p)
{
    json_open(&b->json, "images", '[');
    vec_each (const struct profile_image, i, &p->images) {
        json_open(&b->json, NULL, '{');
        json_text(&b->json, "program", profile_text(p, i->comm));
        json_signed(&b->json, "pid", i->pid);
        json_flag(&b->json, "ended", html_profile_image_ended(i));
        json_real(&b->json, "began_ms", (double)i->began_ns / 1e6);
        json_real(&b->json, "taken_ms", (double)i->taken_ns / 1e6);
        json_real(&b->json, "peak_ms", (double)i->peak_ns / 1e6);
        json_real(&b->json, "peak_bytes", i->peak_bytes);
        json_close(&b->json, '}');
    }
    json_close(&b->json, ']');
}

uint32_t html_profile_add(struct page_blob *b, const struct profile *p, const struct rollup_options *like,
                          uint32_t most)
{
    struct call_tree *t = call_tree_new(p, like);
    const uint32_t nodes = (uint32_t)t->nodes.len;
    if (most)
        call_tree_prune(t, most);
    struct rollup_options o = *like;
    o.group = ROLLUP_BY_PROCESS; /* whose total is that of all stacks */
    struct rollup *all = rollup_new(p, &o);
    json_open(&b->json, "profile", '{');
    page_blob_add_texts(b, "strings", t->strings.at, t->strings.len);
    add_frames(b, t);
    add_nodes(b, t);
    add_rows(b, t);
    add_metrics(b, t, &all->total);
    add_images(b, p);
    if (!like->keep && !like->keep_sample)
        add_points(b, p);
    json_close(&b->json, '}');
    rollup_free(all);
    call_tree_free(t);
    return nodes;
}
