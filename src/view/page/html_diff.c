/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/page/html_diff.h"

#include <inttypes.h>
#include <stdlib.h>

#include "view/page/html_tree.h"

static const char *const metric_keys[ROLLUP_METRICS] = {"live", "peak", "allocated", "temporary"};

/* In the order in which the page offers them. */
static const struct {
    const char *key;
    enum diff_part part;
} sides[] = {{"after", DIFF_AFTER}, {"before", DIFF_BEFORE}, {"grew", DIFF_GREW}, {"shrank", DIFF_SHRANK}};
#define N_SIDES (sizeof(sides) / sizeof(*sides))

static uint32_t captures_of(const struct diff *d)
{
    return d->side[PROFILE_PAIR_BEFORE].n + d->side[PROFILE_PAIR_AFTER].n;
}

uint32_t html_diff_weigh(struct diff *d, double *weights)
{
    const size_t trees = d->by_capture ? captures_of(d) : N_SIDES;
    uint32_t n = 0;
    for (enum rollup_metric m = 0; m < ROLLUP_METRICS; m++)
        for (size_t i = 0; diff_known(d, m) && i < trees && (weights || !n); i++) {
            struct call_tree *t =
                d->by_capture ? diff_tree_of(d, m, (uint32_t)i) : diff_tree(d, m, sides[i].part);
            n = (uint32_t)t->nodes.len;
            if (weights)
                call_tree_weigh(t, weights);
            call_tree_free(t);
        }
    return n;
}

/* `key`: "live grew". */
static void add_side(struct page_blob *b, const char *key, const struct call_tree *t,
                     const struct diff_value *total, enum diff_part part)
{
    struct html_rows all = {0};
    for (uint32_t i = 0; i < t->rows.len; i++)
        *vec_push(&all) = i;
    json_open(&b->json, NULL, '{');
    json_text(&b->json, "key", key);
    json_open(&b->json, "total", '{');
    html_tree_add_total(b, "bytes", &total->of[part].bytes);
    html_tree_add_total(b, "count", &total->of[part].count);
    json_close(&b->json, '}');
    html_tree_add_estimates(b, "bytes", t, &all, ROLLUP_LIVE, false);
    html_tree_add_estimates(b, "count", t, &all, ROLLUP_LIVE, true);
    json_close(&b->json, '}');
    vec_release(&all);
}

static void add_change(struct page_blob *b, const char *key, const struct diff_value *total, bool count)
{
    const struct diff_change c = diff_change(total, count);
    json_open(&b->json, key, '{');
    json_real(&b->json, "value", c.value);
    json_real(&b->json, "low", c.interval.low);
    json_real(&b->json, "high", c.interval.high);
    json_close(&b->json, '}');
}

static void add_changes(struct page_blob *b, const struct diff *d)
{
    json_open(&b->json, "changes", '{');
    for (enum rollup_metric m = 0; m < ROLLUP_METRICS; m++) {
        if (!diff_known(d, m))
            continue;
        json_open(&b->json, metric_keys[m], '{');
        add_change(b, "bytes", &d->total[m], false);
        add_change(b, "count", &d->total[m], true);
        json_close(&b->json, '}');
    }
    json_close(&b->json, '}');
}

static void add_first(struct page_blob *b, const struct diff *d)
{
    struct buf key = BUF_INIT;
    buf_printf(&key, "%s after", metric_keys[rollup_sort_metric(d->options.sort)]);
    json_open(&b->json, "first", '{');
    json_text(&b->json, "key", buf_str(&key));
    json_text(&b->json, "amount", diff_counts(d->options.sort) ? "count" : "bytes");
    json_close(&b->json, '}');
    buf_release(&key);
}

/* What is written: the tree of all sides once, then the values of each. */
struct page_diff {
    struct page_blob *b;
    struct diff *d;
    uint32_t most; /* nodes; 0: all */
    const double *weights;
    bool begun;
};

static struct call_tree *pruned(const struct page_diff *p, struct call_tree *t)
{
    if (p->most)
        call_tree_prune(t, p->most, p->weights);
    return t;
}

/* Adds a side of a metric. All trees have the same nodes: of the first one the frames are written, too. */
static void add_tree(struct page_diff *p, enum rollup_metric m, size_t side, const struct call_tree *t)
{
    struct buf key = BUF_INIT;
    if (!p->begun) {
        html_tree_add(p->b, t);
        json_open(&p->b->json, "metrics", '[');
    }
    p->begun = true;
    buf_printf(&key, "%s %s", metric_keys[m], sides[side].key);
    add_side(p->b, buf_str(&key), t, &p->d->total[m], sides[side].part);
    buf_release(&key);
}

/* Adds the values of a capture as a metric, from which the page computes the spread of what it shows. */
static void add_capture(struct page_diff *p, enum rollup_metric m, uint32_t capture,
                        const struct call_tree *t)
{
    struct buf key = BUF_INIT;
    buf_printf(&key, "%s capture%" PRIu32, metric_keys[m], capture);
    json_open(&p->b->json, NULL, '{');
    json_text(&p->b->json, "key", buf_str(&key));
    json_open(&p->b->json, "total", '{');
    json_close(&p->b->json, '}');
    html_tree_add_values(p->b, "bytes", t, ROLLUP_LIVE, false);
    html_tree_add_values(p->b, "count", t, ROLLUP_LIVE, true);
    json_close(&p->b->json, '}');
    buf_release(&key);
}

/* The means after and before, which are also what grew and what shrank; then the captures, if there are several. */
static void add_by_capture(struct page_diff *p, enum rollup_metric m)
{
    const struct diff_side *of = p->d->side;
    const uint32_t n = captures_of(p->d);
    struct call_tree **trees = mem_array(n, sizeof(struct call_tree *));
    for (uint32_t i = 0; i < n; i++)
        trees[i] = pruned(p, diff_tree_of(p->d, m, i));
    for (size_t side = 0; side < 2; side++) {
        const bool after = sides[side].part == DIFF_AFTER;
        const uint32_t first = after ? of[PROFILE_PAIR_BEFORE].n : 0;
        const uint32_t end = first + of[after ? PROFILE_PAIR_AFTER : PROFILE_PAIR_BEFORE].n;
        struct call_tree *mean = pruned(p, diff_tree_of(p->d, m, first));
        call_tree_combine(mean, 1.0 / (end - first), NULL, 0);
        for (uint32_t i = first + 1; i < end; i++)
            call_tree_combine(mean, 1, trees[i], 1.0 / (end - first));
        add_tree(p, m, side, mean);
        call_tree_free(mean);
    }
    for (uint32_t i = 0; i < n; i++) {
        if (p->d->spread)
            add_capture(p, m, i, trees[i]);
        call_tree_free(trees[i]);
    }
    free(trees);
}

static void add_sides(struct page_blob *b, const struct diff *d)
{
    json_open(&b->json, "captures", '{');
    json_whole(&b->json, "before", d->side[PROFILE_PAIR_BEFORE].n);
    json_whole(&b->json, "after", d->side[PROFILE_PAIR_AFTER].n);
    json_real(&b->json, "tail", d->tail);
    json_close(&b->json, '}');
}

void html_diff_add(struct page_blob *b, struct diff *d, uint32_t most, const double *weights)
{
    struct page_diff p = {.b = b, .d = d, .most = most, .weights = weights};
    json_open(&b->json, "profile", '{');
    for (enum rollup_metric m = 0; m < ROLLUP_METRICS; m++) {
        if (!diff_known(d, m))
            continue;
        for (size_t i = 0; !d->by_capture && i < N_SIDES; i++) {
            struct call_tree *t = pruned(&p, diff_tree(d, m, sides[i].part));
            add_tree(&p, m, i, t);
            call_tree_free(t);
        }
        if (d->by_capture)
            add_by_capture(&p, m);
    }
    json_close(&b->json, ']');
    if (d->spread)
        add_sides(b, d);
    add_changes(b, d);
    add_first(b, d);
    json_open(&b->json, "images", '[');
    json_close(&b->json, ']');
    json_close(&b->json, '}');
}
