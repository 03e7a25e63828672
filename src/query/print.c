/* SPDX-License-Identifier: BSD-2-Clause */
#include "query/query_number.h"
#include "query/query_tree.h"

#include <string.h>

/*
 * Prints the pattern, in quotes if it contains a character that would end it. The parser left only the backslashes
 * that must stay.
 */
static void print_pattern(const struct query *q, const struct query_alt *alt, struct buf *out)
{
    const char *p = q->patterns.data + alt->pattern + (alt->anywhere ? PATTERN_ANYWHERE_BYTES : 0);
    bool quoted = p[strcspn(p, " ,()\"")] != '\0';
    if (quoted)
        buf_addch(out, '"');
    for (; *p; p++) {
        if (*p == '"')
            buf_addch(out, '\\');
        buf_addch(out, *p);
    }
    if (quoted)
        buf_addch(out, '"');
}

static void print_alt(const struct query *q, const struct query_node *term, const struct query_alt *alt,
                      struct buf *out)
{
    if (query_type_is_text(term->type)) {
        print_pattern(q, alt, out);
        return;
    }
    query_number_print(term->type, alt->low, out);
    if (alt->op == QUERY_WITHIN && alt->high != alt->low) {
        buf_addstr(out, "..");
        query_number_print(term->type, alt->high, out);
    }
}

static const char *op_text(const struct query_node *term, const struct query_alt *alt)
{
    switch (alt->op) {
    case QUERY_WITHIN:
        break;
    case QUERY_ABOVE:
        return ">";
    case QUERY_AT_LEAST:
        return ">=";
    case QUERY_BELOW:
        return "<";
    case QUERY_AT_MOST:
        return "<=";
    }
    bool one_number = !query_type_is_text(term->type) && term->n_alts == 1 && alt->low == alt->high;
    return one_number ? "=" : ":";
}

static void print_node(const struct query *q, const struct query_field *fields, const struct query_node *node,
                       enum query_kind parent, struct buf *out)
{
    if (node->negated)
        buf_addch(out, '!');
    if (node->kind == QUERY_TERM) {
        const struct query_alt *alt = &q->alts.at[node->first_alt];
        buf_printf(out, "%s%s", fields[node->field].name, op_text(node, alt));
        for (size_t i = 0; i < node->n_alts; i++) {
            if (i)
                buf_addch(out, ',');
            print_alt(q, node, alt + i, out);
        }
        return;
    }
    bool parens = node->negated || (node->kind == QUERY_ANY && parent == QUERY_ALL);
    const struct query_node *end = node + node->span;
    if (parens)
        buf_addch(out, '(');
    for (const struct query_node *child = node + 1; child < end; child += child->span) {
        if (child > node + 1)
            buf_addstr(out, node->kind == QUERY_ANY ? " or " : " ");
        print_node(q, fields, child, node->kind, out);
    }
    if (parens)
        buf_addch(out, ')');
}

void query_tree_print(const struct query *q, const struct query_field *fields, struct buf *out)
{
    if (q->nodes.len)
        print_node(q, fields, q->nodes.at, QUERY_ANY, out);
}
