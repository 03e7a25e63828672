/* SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/profile/call_tree.h"

/* The largest share of any metric, of bytes or of objects, that is at a node or below it. */
void call_tree_weigh(const struct call_tree *t, double *weights)
{
    const size_t n = t->nodes.len;
    double *sums = mem_array(n, sizeof(*sums));
    for (unsigned k = 0; k < 2 * ROLLUP_METRICS; k++) {
        memset(sums, 0, n * sizeof(*sums));
        vec_each (const struct call_tree_row, row, &t->rows) {
            const struct rollup_value *v = &row->values->of[k / 2];
            sums[row->at.node] += k % 2 ? v->count.value : v->bytes.value;
        }
        for (size_t i = n; i-- > 1;)
            sums[t->nodes.at[i].parent] += sums[i];
        for (size_t i = 0; i < n && sums[0] > 0; i++)
            weights[i] = fmax(weights[i], sums[i] / sums[0]);
    }
    free(sums);
}

static int heaviest_first(const void *a, const void *b, void *weights)
{
    const uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    const double *w = weights;
    if (w[i] < w[k] || w[i] > w[k])
        return w[i] < w[k] ? 1 : -1;
    return (i > k) - (i < k);
}

/*
 * The root and the `most` heaviest nodes. A parent weighs at least as much as its child, and comes first if both weigh
 * the same: so the parent of a chosen node is chosen, too.
 */
static bool *choose(const struct call_tree *t, uint32_t most, const double *weights)
{
    const uint32_t n = (uint32_t)t->nodes.len;
    uint32_t *order = mem_array(n, sizeof(*order));
    bool *stays = mem_array(n, sizeof(*stays));
    for (uint32_t i = 0; i < n; i++)
        order[i] = i;
    qsort_r(order + 1, n - 1, sizeof(*order), heaviest_first, (void *)weights);
    for (uint32_t i = 0; i < n && i <= most; i++)
        stays[order[i]] = true;
    free(order);
    return stays;
}

struct prune {
    struct call_tree *t;
    const bool *stays;            /* by old node */
    struct call_tree_node *nodes; /* the new ones */
    uint32_t n;
    /* By old node: its new one; of one that goes, the [rest] of its nearest ancestor that stays. */
    uint32_t *number;
    uint32_t rest_frame;
};

static uint32_t put_node(struct prune *p, uint32_t parent, uint32_t frame, uint32_t line)
{
    p->nodes[p->n] = (struct call_tree_node){.parent = parent, .frame = frame, .line = line};
    return p->n++;
}

/*
 * Walks the old nodes in their order, and numbers those that stay. Behind the kept nodes below a node comes its [rest].
 * Removed nodes get the number of the [rest] of their nearest ancestor that is kept.
 */
static void number_nodes(struct prune *p)
{
    const struct call_tree_node *old = p->t->nodes.at;
    struct open {
        uint32_t node;
        bool has_rest;
    };
    struct VEC(struct open) open = {0};
    const uint32_t n = (uint32_t)p->t->nodes.len;
    for (uint32_t i = 0;; i++) {
        while (open.len && old[open.at[open.len - 1].node].end <= i) {
            const struct open o = open.at[--open.len];
            const uint32_t at = p->number[o.node];
            if (o.has_rest) {
                const uint32_t rest = put_node(p, at, p->rest_frame, 0);
                p->nodes[rest].end = p->n;
                for (uint32_t k = o.node + 1; k < old[o.node].end; k++)
                    p->number[k] = p->number[k] == UINT32_MAX ? rest : p->number[k];
            }
            p->nodes[at].end = p->n;
        }
        if (i == n)
            break;
        if (!p->stays[i]) {
            open.at[open.len - 1].has_rest = true;
            for (uint32_t k = i; k < old[i].end; k++)
                p->number[k] = UINT32_MAX;
            i = old[i].end - 1;
            continue;
        }
        p->number[i] = put_node(p, i ? p->number[old[i].parent] : 0, old[i].frame, old[i].line);
        *vec_push(&open) = (struct open){i, false};
    }
    vec_release(&open);
}

static void merge_values(struct rollup_values *to, const struct rollup_values *v)
{
    for (int m = 0; m < ROLLUP_METRICS; m++) {
        estimate_merge(&to->of[m].bytes, &v->of[m].bytes);
        estimate_merge(&to->of[m].count, &v->of[m].count);
    }
    to->unknown |= v->unknown;
    to->requested_bytes += v->requested_bytes;
    to->aged_samples += v->aged_samples;
    to->oldest_ns = v->oldest_ns > to->oldest_ns ? v->oldest_ns : to->oldest_ns;
}

/* Returns whether the place has become part of a [rest]. */
static bool prune_place(const struct prune *p, struct call_tree_place *at)
{
    call_tree_move_place(at, p->number);
    if (!at->node || p->nodes[at->node].frame != p->rest_frame)
        return false;
    at->site = at->owner = at->node;
    at->line = 0;
    return true;
}

/* Rows of nodes that went become one for each [rest]. */
static void move_rows(struct prune *p)
{
    struct call_tree *t = p->t;
    struct map index = {0}; /* by new node: a number in t->rests */
    size_t kept = 0;
    for (size_t i = 0; i < t->rows.len; i++) {
        struct call_tree_row row = t->rows.at[i];
        if (prune_place(p, &row.at)) {
            bool added;
            const size_t at = map_put_u64(&index, row.at.node, t->rests.len, &added);
            if (added)
                *vec_push(&t->rests) = mem_alloc(sizeof(struct rollup_values));
            merge_values(t->rests.at[at], row.values);
            if (!added)
                continue;
            row.values = t->rests.at[at];
        }
        t->rows.at[kept++] = row;
    }
    t->rows.len = kept;
    map_release(&index);
    vec_each (struct call_tree_place, at, &t->places)
        prune_place(p, at);
    call_tree_sort_rows(t);
}

uint32_t call_tree_prune(struct call_tree *t, uint32_t most, const double *weights)
{
    const uint32_t n = (uint32_t)t->nodes.len;
    if (n <= most + 1)
        return 0;
    double *own = weights ? NULL : mem_array(n, sizeof(*own));
    if (own)
        call_tree_weigh(t, own);
    bool *stays = choose(t, most, own ? own : weights);
    free(own);
    struct prune p = {.t = t, .stays = stays};
    p.rest_frame = t->rest_frame = (uint32_t)t->frames.len;
    const uint32_t name = call_tree_string(t, "[rest]");
    *vec_push(&t->frames) = (struct call_tree_frame){.function = name, .kind = CALL_TREE_MARKER};
    p.nodes = mem_array(2 * (size_t)n, sizeof(*p.nodes));
    p.number = mem_array(n, sizeof(*p.number));
    number_nodes(&p);
    move_rows(&p);
    free(t->nodes.at);
    t->nodes.at = p.nodes;
    t->nodes.cap = 2 * (size_t)n;
    t->nodes.len = p.n;
    free(p.number);
    free(stays);
    return n - p.n;
}
