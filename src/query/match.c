/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/sigsafe/pattern.h"
#include "query/query_tree.h"

struct query_probe {
    const struct query *query;
    const struct query_node *term;
    bool holds;
};

unsigned query_alt_how(const struct query_node *term, const struct query_alt *alt)
{
    return (alt->anywhere ? PATTERN_ANYWHERE : 0) | (term->type == QUERY_MODULE ? PATTERN_MODULE : 0);
}

static bool match_number(const struct query_alt *alt, int64_t value)
{
    switch (alt->op) {
    case QUERY_WITHIN:
        return alt->low <= value && value <= alt->high;
    case QUERY_ABOVE:
        return value > alt->low;
    case QUERY_AT_LEAST:
        return value >= alt->low;
    case QUERY_BELOW:
        return value < alt->low;
    case QUERY_AT_MOST:
        return value <= alt->low;
    }
    return false;
}

bool query_offer_text(struct query_probe *probe, const char *text)
{
    const struct query_node *term = probe->term;
    if (!text || !query_type_is_text(term->type))
        return probe->holds;
    for (size_t i = 0; i < term->n_alts && !probe->holds; i++) {
        const struct query_alt *alt = &probe->query->alts.at[term->first_alt + i];
        probe->holds =
            pattern_fits(probe->query->patterns.data + alt->pattern, query_alt_how(term, alt), text);
    }
    return probe->holds;
}

bool query_offer_number(struct query_probe *probe, int64_t value)
{
    const struct query_node *term = probe->term;
    if (query_type_is_text(term->type))
        return probe->holds;
    for (size_t i = 0; i < term->n_alts && !probe->holds; i++)
        probe->holds = match_number(&probe->query->alts.at[term->first_alt + i], value);
    return probe->holds;
}

bool query_node_holds(const struct query *q, const struct query_node *node, query_lookup_fn get,
                      void *subject)
{
    bool holds;
    if (node->kind == QUERY_TERM) {
        struct query_probe probe = {.query = q, .term = node};
        get(subject, node->field, &probe);
        holds = probe.holds;
    } else {
        bool decisive = node->kind == QUERY_ANY;
        const struct query_node *end = node + node->span;
        holds = !decisive;
        for (const struct query_node *child = node + 1; child < end && holds != decisive;
             child += child->span)
            holds = query_node_holds(q, child, get, subject);
    }
    return holds != node->negated;
}

bool query_match(const struct query *q, query_lookup_fn get, void *subject)
{
    return !q->nodes.len || query_node_holds(q, q->nodes.at, get, subject);
}

bool query_uses(const struct query *q, size_t field)
{
    vec_each (const struct query_node, node, &q->nodes) {
        if (node->kind == QUERY_TERM && node->field == field)
            return true;
    }
    return false;
}
