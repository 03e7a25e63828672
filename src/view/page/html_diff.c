/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/page/html_diff.h"

#include "view/page/html_tree.h"

static const char *const metric_keys[ROLLUP_METRICS] = {"live", "peak", "allocated", "temporary"};

/* In the order in which the page offers them. */
static const struct {
    const char *key;
    enum diff_part part;
} sides[] = {{"after", DIFF_AFTER}, {"before", DIFF_BEFORE}, {"grew", DIFF_GREW}, {"shrank", DIFF_SHRANK}};
#define N_SIDES (sizeof(sides) / sizeof(*sides))

uint32_t html_diff_weigh(struct diff *d, double *weights)
{
    uint32_t n = 0;
    for (enum rollup_metric m = 0; m < ROLLUP_METRICS; m++)
        for (size_t i = 0; diff_known(d, m) && i < N_SIDES && (weights || !n); i++) {
            struct call_tree *t = diff_tree(d, m, sides[i].part);
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

/* All trees have the same nodes: the first one is written with its frames, of the others only the values. */
void html_diff_add(struct page_blob *b, struct diff *d, uint32_t most, const double *weights)
{
    bool is_first = true;
    json_open(&b->json, "profile", '{');
    for (enum rollup_metric m = 0; m < ROLLUP_METRICS; m++)
        for (size_t i = 0; diff_known(d, m) && i < N_SIDES; i++) {
            struct call_tree *t = diff_tree(d, m, sides[i].part);
            struct buf key = BUF_INIT;
            if (most)
                call_tree_prune(t, most, weights);
            if (is_first) {
                html_tree_add(b, t);
                json_open(&b->json, "metrics", '[');
            }
            is_first = false;
            buf_printf(&key, "%s %s", metric_keys[m], sides[i].key);
            add_side(b, buf_str(&key), t, &d->total[m], sides[i].part);
            buf_release(&key);
            call_tree_free(t);
        }
    json_close(&b->json, ']');
    add_changes(b, d);
    add_first(b, d);
    json_open(&b->json, "images", '[');
    json_close(&b->json, ']');
    json_close(&b->json, '}');
}
