/* SPDX-License-Identifier: BSD-2-Clause */
#include "query/glob.h"
#include "query/tree.h"

#include <string.h>

struct query_probe {
    const struct query *query;
    const struct query_node *term;
    bool holds;
};

/* The pattern against one spelling of a value: whole, and where it may, behind any slash. */
static bool match_spelling(const struct query *q, const struct query_alt *alt, const char *text, size_t len)
{
    const char *pattern = q->patterns.data + alt->pattern;
    if (!alt->anywhere)
        return query_glob(pattern, text, len);
    return query_glob(pattern + QUERY_ANYWHERE_BYTES, text, len) || query_glob(pattern, text, len);
}

/* "/lib/libc-2.31.so.6" -> the length of "/lib/libc-2.31"; `len` when it is not a shared object's name. */
static size_t cut_so(const char *text, size_t len)
{
    const char *slash = strrchr(text, '/');
    const char *name = slash ? slash + 1 : text;
    for (const char *so = name; (so = strstr(so, ".so")); so++)
        if (so > name && (so[3] == '\0' || so[3] == '.'))
            return (size_t)(so - text);
    return len;
}

/* "/lib/libc-2.31" -> the length of "/lib/libc"; `len` when there is no version. */
static size_t cut_version(const char *text, size_t len)
{
    size_t n = len;
    while (n > 0 && ((text[n - 1] >= '0' && text[n - 1] <= '9') || text[n - 1] == '.'))
        n--;
    bool version = n < len && text[n] != '.' && n > 1 && text[n - 1] == '-' && text[n - 2] != '/';
    return version ? n - 1 : len;
}

static bool match_text(const struct query *q, const struct query_alt *alt, enum query_type type,
                       const char *text)
{
    size_t len = strlen(text);
    if (match_spelling(q, alt, text, len))
        return true;
    if (type != QUERY_MODULE)
        return false;
    size_t stem = cut_so(text, len);
    if (stem == len)
        return false;
    if (match_spelling(q, alt, text, stem))
        return true;
    size_t bare = cut_version(text, stem);
    return bare < stem && match_spelling(q, alt, text, bare);
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
    for (size_t i = 0; i < term->n_alts && !probe->holds; i++)
        probe->holds =
            match_text(probe->query, &probe->query->alts.at[term->first_alt + i], term->type, text);
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

static bool node_holds(const struct query *q, const struct query_node *node, query_lookup_fn get,
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
            holds = node_holds(q, child, get, subject);
    }
    return holds != node->negated;
}

bool query_match(const struct query *q, query_lookup_fn get, void *subject)
{
    return !q->nodes.len || node_holds(q, q->nodes.at, get, subject);
}

bool query_uses(const struct query *q, size_t field)
{
    vec_each (const struct query_node, node, &q->nodes) {
        if (node->kind == QUERY_TERM && node->field == field)
            return true;
    }
    return false;
}
