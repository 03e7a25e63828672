/* SPDX-License-Identifier: BSD-2-Clause */
#include "query/query_tree.h"

/* A set of numbers: disjoint ranges, the smallest first. */
struct set {
    struct query_range at[QUERY_RANGES_MAX];
    size_t n;
    bool overflows; /* it has more ranges */
};

static void add(struct set *s, int64_t low, int64_t high)
{
    if (s->n && low <= high && (s->at[s->n - 1].high == INT64_MAX || low <= s->at[s->n - 1].high + 1)) {
        if (high > s->at[s->n - 1].high)
            s->at[s->n - 1].high = high;
    } else if (low <= high && s->n < QUERY_RANGES_MAX) {
        s->at[s->n++] = (struct query_range){low, high};
    } else if (low <= high) {
        s->overflows = true;
    }
}

static struct query_range range_of(const struct query_alt *alt)
{
    switch (alt->op) {
    case QUERY_WITHIN:
        return (struct query_range){alt->low, alt->high};
    case QUERY_ABOVE: /* above the largest number there is none */
        return alt->low == INT64_MAX ? (struct query_range){1, 0}
                                     : (struct query_range){alt->low + 1, INT64_MAX};
    case QUERY_AT_LEAST:
        return (struct query_range){alt->low, INT64_MAX};
    case QUERY_BELOW:
        return alt->low == INT64_MIN ? (struct query_range){1, 0}
                                     : (struct query_range){INT64_MIN, alt->low - 1};
    case QUERY_AT_MOST:
        return (struct query_range){INT64_MIN, alt->low};
    }
    return (struct query_range){1, 0};
}

/* The alternatives of a term, which are in any order and may overlap. */
static struct set set_of(const struct query *q, const struct query_node *term)
{
    struct set s = {.n = 0};
    int64_t after = INT64_MIN;
    for (;;) {
        const struct query_range *first = NULL;
        struct query_range each, least;
        for (size_t i = 0; i < term->n_alts; i++) {
            each = range_of(&q->alts.at[term->first_alt + i]);
            if (each.low > each.high || each.high < after)
                continue;
            each.low = each.low < after ? after : each.low;
            if (!first || each.low < least.low || (each.low == least.low && each.high > least.high))
                least = each;
            first = &least;
        }
        if (!first)
            return s;
        add(&s, least.low, least.high);
        if (least.high == INT64_MAX)
            return s;
        after = least.high + 1;
    }
}

static struct set opposite(const struct set *s)
{
    struct set out = {.overflows = s->overflows};
    int64_t from = INT64_MIN;
    for (size_t i = 0; i < s->n; i++) {
        if (s->at[i].low > from)
            add(&out, from, s->at[i].low - 1);
        if (s->at[i].high == INT64_MAX)
            return out;
        from = s->at[i].high + 1;
    }
    add(&out, from, INT64_MAX);
    return out;
}

static struct set both(const struct set *a, const struct set *b)
{
    struct set out = {.overflows = a->overflows || b->overflows};
    for (size_t i = 0; i < a->n; i++)
        for (size_t k = 0; k < b->n; k++)
            add(&out, a->at[i].low > b->at[k].low ? a->at[i].low : b->at[k].low,
                a->at[i].high < b->at[k].high ? a->at[i].high : b->at[k].high);
    return out;
}

size_t query_ranges(const struct query *q, size_t field, struct query_range out[static QUERY_RANGES_MAX])
{
    struct set found = {.at = {{INT64_MIN, INT64_MAX}}, .n = 1};
    const struct query_node *root = q->nodes.at, *end = q->nodes.len ? root + q->nodes.len : root;
    const bool is_list = q->nodes.len && root->kind == QUERY_ALL && !root->negated;
    for (const struct query_node *node = is_list ? root + 1 : root; node && node < end; node += node->span) {
        if (node->kind != QUERY_TERM || node->field != field || query_type_is_text(node->type))
            continue;
        const struct set own = set_of(q, node), other = opposite(&own);
        const struct set next = both(&found, node->negated ? &other : &own);
        if (!next.overflows)
            found = next;
    }
    memcpy(out, found.at, found.n * sizeof(*out));
    return found.n;
}
