/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/page/html_tree.h"

#include <stdlib.h>

enum { FRAME_INLINED = 1, FRAME_WRAPPER = 2, FRAME_PROCESS = 4, FRAME_MARKER = 8, FRAME_NAMELESS = 16 };

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

void html_tree_add_estimates(struct page_blob *b, const char *key, const struct call_tree *t,
                             const struct html_rows *rows, enum rollup_metric m, bool count)
{
    const size_t n = rows->len;
    double *columns[PARTS] = {NULL};
    size_t at[PARTS];
    for (enum part k = 0; k < PARTS; k++)
        columns[k] = mem_array(n + 1, sizeof(double));
    for (size_t i = 0; i < n; i++) {
        const struct rollup_value v = rollup_value_of(t->rows.at[rows->at[i]].values, m);
        put_parts(columns, i, count ? &v.count : &v.bytes);
    }
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

void html_tree_add_total(struct page_blob *b, const char *key, const struct estimate *e)
{
    const struct interval i = estimate_interval(e);
    json_open(&b->json, key, '{');
    json_real(&b->json, "value", e->value);
    json_real(&b->json, "low", i.low);
    json_real(&b->json, "high", i.high);
    json_close(&b->json, '}');
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

void html_tree_add(struct page_blob *b, const struct call_tree *t)
{
    page_blob_add_texts(b, "strings", t->strings.at, t->strings.len);
    add_frames(b, t);
    add_nodes(b, t);
    add_rows(b, t);
}
