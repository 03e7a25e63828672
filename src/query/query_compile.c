/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "base/sigsafe/clause.h"
#include "query/query_tree.h"

struct compiler {
    const struct query *query;
    const int *ways; /* by field */
    query_lookup_fn get;
    void *subject;
    struct buf *out;
};

static void put(struct compiler *c, int byte)
{
    buf_addch(c->out, (char)byte);
}

static bool put_term(struct compiler *c, const struct query_node *node)
{
    int way = c->ways[node->field], not = node->negated ? CLAUSE_NOT : 0;
    if (way == QUERY_FIXED) { /* a group without children: "all" is true, "any" is false */
        put(c, query_node_holds(c->query, node, c->get, c->subject) ? CLAUSE_ALL : CLAUSE_ANY);
        put(c, 0);
        return true;
    }
    if (way == QUERY_NOT_KNOWN || node->n_alts > CLAUSE_COUNT_MOST)
        return false;
    put(c, CLAUSE_TERM | not );
    put(c, way);
    put(c, (int)node->n_alts);
    for (size_t i = 0; i < node->n_alts; i++) {
        const struct query_alt *alt = &c->query->alts.at[node->first_alt + i];
        const char *pattern = c->query->patterns.data + alt->pattern;
        put(c, (int)query_alt_how(node, alt));
        buf_add(c->out, pattern, strlen(pattern) + 1);
    }
    return true;
}

static bool put_node(struct compiler *c, const struct query_node *node, unsigned depth)
{
    const struct query_node *end = node + node->span;
    size_t count = 0, at;
    if (node->kind == QUERY_TERM)
        return put_term(c, node);
    put(c, (node->kind == QUERY_ANY ? CLAUSE_ANY : CLAUSE_ALL) | (node->negated ? CLAUSE_NOT : 0));
    at = c->out->len;
    put(c, 0);
    for (const struct query_node *child = node + 1; child < end; child += child->span, count++)
        if (depth + 1 >= CLAUSE_DEPTH_MOST || count == CLAUSE_COUNT_MOST || !put_node(c, child, depth + 1))
            return false;
    c->out->data[at] = (char)count;
    return true;
}

bool query_compile(const struct query *q, const int *ways, query_lookup_fn get, void *subject,
                   struct buf *out)
{
    struct compiler c = {q, ways, get, subject, out};
    if (q->nodes.len)
        return put_node(&c, q->nodes.at, 0);
    put(&c, CLAUSE_ALL);
    put(&c, 0);
    return true;
}
