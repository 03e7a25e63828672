/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/text/tree.h"

#include "base/mem.h"

static double value_of(const struct rollup *r, uint32_t row)
{
    return rollup_sort_value(r->options.sort, &r->rows.at[row].inclusive);
}

/* Sorts larger rows first; equal rows in their order, so that no row is selected before the row above it. */
static int larger_first(const void *a, const void *b, void *arg)
{
    const struct rollup *r = arg;
    uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    double x = value_of(r, i), y = value_of(r, k);
    if (x != y)
        return x < y ? 1 : -1;
    return i < k ? -1 : i > k;
}

static void choose(struct tree *t, uint32_t top, bool lines)
{
    const struct rollup *r = t->r;
    size_t n = 0;
    uint32_t *ranked = mem_array(r->rows.len, sizeof(*ranked));
    for (uint32_t i = 0; i < r->rows.len; i++) {
        t->place[i] = PROFILE_NONE;
        if (value_of(r, i) > 0 && !(lines && t->joins[i]))
            ranked[n++] = i;
    }
    if (n)
        qsort_r(ranked, n, sizeof(*ranked), larger_first, (void *)r);
    for (size_t k = 0; k < n && (!top || k < top); k++)
        t->place[ranked[k]] = 0;
    for (uint32_t i = 0; i < r->rows.len; i++)
        if (t->place[i] != PROFILE_NONE) {
            t->place[i] = (uint32_t)t->n;
            t->shown[t->n++] = i;
        }
    free(ranked);
}

/* Sets `joins`. The root of the tree has a line of its own. */
static void join_lines(struct tree *t)
{
    const struct rollup *r = t->r;
    unsigned *below = mem_array(r->rows.len, sizeof(*below));
    for (uint32_t i = 0; i < r->rows.len; i++)
        if (r->rows.at[i].parent != PROFILE_NONE && value_of(r, i) > 0)
            below[r->rows.at[i].parent]++;
    for (uint32_t i = 0; i < r->rows.len; i++) {
        uint32_t parent = r->rows.at[i].parent;
        if (parent == PROFILE_NONE)
            continue;
        t->joins[i] = below[parent] == 1 && r->rows.at[parent].depth && value_of(r, i) == value_of(r, parent);
        t->indents[i] = t->indents[parent] + !t->joins[i];
    }
    free(below);
}

void tree_init(struct tree *t, const struct rollup *r, uint32_t top, bool lines)
{
    size_t n = r->rows.len;
    *t = (struct tree){.r = r};
    t->shown = mem_array(n, sizeof(*t->shown));
    t->place = mem_array(n, sizeof(*t->place));
    t->indents = mem_array(n, sizeof(*t->indents));
    t->joins = mem_array(n, sizeof(*t->joins));
    join_lines(t);
    choose(t, top, lines);
}

void tree_release(struct tree *t)
{
    free(t->shown);
    free(t->place);
    free(t->indents);
    free(t->joins);
}
