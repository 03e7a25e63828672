/* SPDX-License-Identifier: BSD-2-Clause */
#include "query/parse.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define EXCERPT_BYTES_MAX 40

int query_fail(struct query_parser *ps, int code, const char *where, const char *hint, const char *what, ...)
{
    char text[160];
    va_list ap;
    va_start(ap, what);
    vsnprintf(text, sizeof(text), what, ap);
    va_end(ap);
    size_t column = (size_t)(where - ps->text) + 1;
    if (ps->column)
        *ps->column = column;
    return error_set(ps->err, code, "query: %s at column %zu%s%s", text, column, hint ? "; " : "",
                     hint ? hint : "");
}

int query_excerpt(const char *text, size_t len)
{
    if (len > EXCERPT_BYTES_MAX) {
        len = EXCERPT_BYTES_MAX;
        while (len > EXCERPT_BYTES_MAX - 4 && ((unsigned char)text[len] & 0xc0) == 0x80)
            len--;
    }
    return (int)len;
}

static size_t open_group(struct query *q, enum query_kind kind)
{
    vec_push(&q->nodes)->kind = kind;
    return q->nodes.len - 1;
}

/* The nodes added since open_group() become the children of the group; a single child replaces the group. */
static void close_group(struct query *q, size_t group)
{
    struct query_node *node = &q->nodes.at[group];
    node->span = q->nodes.len - group;
    if (node->span == 1 + node[1].span)
        memmove(node, node + 1, (--q->nodes.len - group) * sizeof(*node));
}

static bool at_or(const char *p)
{
    return query_name_len(p) == 2 && !memcmp(p, "or", 2);
}

static int parse_either(struct query_parser *ps);

static int parse_parentheses(struct query_parser *ps)
{
    const char *open = ps->at++;
    if (++ps->depth > QUERY_NESTING_MAX)
        return query_fail(ps, E2BIG, open, NULL, "parentheses nested more than %d deep", QUERY_NESTING_MAX);
    int rc = parse_either(ps);
    if (rc)
        return rc;
    if (*ps->at != ')')
        return query_fail(ps, EINVAL, open, NULL, "\"(\" without \")\"");
    ps->at++;
    ps->depth--;
    return 0;
}

static int parse_item(struct query_parser *ps)
{
    bool negated = false;
    ps->at = query_skip_blanks(ps->at);
    while (*ps->at == '!') {
        negated = !negated;
        ps->at = query_skip_blanks(ps->at + 1);
    }
    size_t node = ps->query->nodes.len;
    int rc;
    if (*ps->at == '(')
        rc = parse_parentheses(ps);
    else if (*ps->at == ')' && !ps->depth)
        rc = query_fail(ps, EINVAL, ps->at, NULL, "\")\" without \"(\"");
    else if (!*ps->at || *ps->at == ')' || at_or(ps->at))
        rc = query_fail(ps, EINVAL, ps->at, "write FIELD:PATTERN or FIELD>VALUE", "missing term");
    else
        rc = query_term_parse(ps);
    if (!rc)
        ps->query->nodes.at[node].negated ^= negated;
    return rc;
}

static int parse_all(struct query_parser *ps)
{
    size_t group = open_group(ps->query, QUERY_ALL);
    do {
        int rc = parse_item(ps);
        if (rc)
            return rc;
        ps->at = query_skip_blanks(ps->at);
    } while (*ps->at && *ps->at != ')' && !at_or(ps->at));
    close_group(ps->query, group);
    return 0;
}

/* Reads alternatives joined by "or", up to the end of the text or a ")". */
static int parse_either(struct query_parser *ps)
{
    size_t group = open_group(ps->query, QUERY_ANY);
    for (;;) {
        int rc = parse_all(ps);
        if (rc)
            return rc;
        if (!at_or(ps->at))
            break;
        ps->at += 2;
    }
    close_group(ps->query, group);
    return 0;
}

static int parse_text(struct query_parser *ps)
{
    if (strnlen(ps->text, QUERY_BYTES_MAX + 1) > QUERY_BYTES_MAX)
        return query_fail(ps, E2BIG, ps->text + QUERY_BYTES_MAX, NULL, "longer than %d bytes",
                          QUERY_BYTES_MAX);
    for (const char *p = ps->text; *p; p++)
        if (((unsigned char)*p < ' ' && !query_is_blank(*p)) || *p == 0x7f)
            return query_fail(ps, EINVAL, p, "write ? instead", "a control character");
    if (!*query_skip_blanks(ps->text))
        return 0;
    int rc = parse_either(ps);
    if (rc)
        return rc;
    if (*ps->at)
        return query_fail(ps, EINVAL, ps->at, NULL, "\")\" without \"(\"");
    query_tree_print(ps->query, ps->fields, &ps->query->text);
    /* "1.3T" becomes longer in whole units. An accepted query must be accepted again in its canonical spelling. */
    if (ps->query->text.len > QUERY_BYTES_MAX)
        return query_fail(ps, E2BIG, ps->text, NULL, "longer than %d bytes with all numbers written out",
                          QUERY_BYTES_MAX);
    return 0;
}

int query_parse(struct query **out, const char *text, const struct query_field *fields, size_t n_fields,
                struct error *err, size_t *column)
{
    struct query *q = mem_alloc(sizeof(*q));
    struct query_parser ps = {.text = text,
                              .at = text,
                              .fields = fields,
                              .n_fields = n_fields,
                              .query = q,
                              .err = err,
                              .column = column};
    int rc = parse_text(&ps);
    buf_release(&ps.scratch);
    if (rc) {
        query_free(q);
        q = NULL;
    }
    *out = q;
    return rc;
}

void query_free(struct query *q)
{
    if (!q)
        return;
    vec_release(&q->nodes);
    vec_release(&q->alts);
    buf_release(&q->patterns);
    buf_release(&q->text);
    free(q);
}

const char *query_text(const struct query *q)
{
    return buf_str(&q->text);
}
