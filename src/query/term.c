/* SPDX-License-Identifier: BSD-2-Clause */
#include "query/field.h"
#include "query/parse.h"
#include "query/query_number.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char quote_hint[] = "put a pattern with blanks, commas, parentheses or quotes in double quotes";

/* Words and signs of other query languages, with the hint for this one. */
static const struct {
    const char *word, *hint;
} foreign[] = {
    {"and", "leave it out: terms next to each other must all match"},
    {"AND", "leave it out: terms next to each other must all match"},
    {"&", "leave it out: terms next to each other must all match"},
    {"OR", "write \"or\""},
    {"|", "write \"or\""},
    {"not", "write \"!\" before a term to negate it"},
    {"NOT", "write \"!\" before a term to negate it"},
    {"-", "write \"!\" before a term to negate it"},
    {",", "write alternatives without blanks: FIELD:THIS,THAT"},
    {"\"", "write a pattern after its field: FIELD:\"PATTERN\""},
};

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

size_t query_name_len(const char *p)
{
    size_t n = 0;
    if (is_letter(*p))
        while (is_letter(p[n]) || (p[n] >= '0' && p[n] <= '9') || p[n] == '_' || p[n] == '-')
            n++;
    return n;
}

static int fail_no_term(struct query_parser *ps)
{
    const char *p = ps->at;
    size_t name = query_name_len(p), len = name ? name : strcspn(p, " \t\n\r()");
    const char *hint = NULL;
    char usage[160];
    for (size_t i = 0; i < sizeof(foreign) / sizeof(*foreign); i++) {
        size_t n = strlen(foreign[i].word);
        if (name ? n == name && !strncmp(p, foreign[i].word, n) : *p == *foreign[i].word)
            hint = foreign[i].hint;
    }
    size_t field = query_field_find(ps->fields, ps->n_fields, p, name);
    if (field != QUERY_NO_FIELD) {
        bool text = query_type_is_text(ps->fields[field].type);
        snprintf(usage, sizeof(usage), "write %.40s%s", ps->fields[field].name,
                 text ? ":PATTERN" : " followed by :, =, >, >=, < or <= and a value");
        hint = usage;
    }
    return query_fail(ps, EINVAL, p, hint ? hint : "write FIELD:PATTERN or FIELD>VALUE",
                      "invalid term \"%.*s\"", query_excerpt(p, len), p);
}

/* Skips ":" or a comparison with blanks around it. Returns false if there is neither. */
static bool read_operator(const char **at, enum query_op *op, bool *colon)
{
    const char *p = *at;
    *op = QUERY_WITHIN;
    *colon = *p == ':';
    if (*colon) {
        *at = p + 1;
        return true;
    }
    p = query_skip_blanks(p);
    if (*p != '<' && *p != '>' && *p != '=')
        return false;
    bool or_equal = *p != '=' && p[1] == '=';
    if (*p == '>')
        *op = or_equal ? QUERY_AT_LEAST : QUERY_ABOVE;
    if (*p == '<')
        *op = or_equal ? QUERY_AT_MOST : QUERY_BELOW;
    *at = query_skip_blanks(p + 1 + or_equal);
    return true;
}

/*
 * Reads a pattern or a number into the scratch buffer, up to a blank, comma or ")" outside quotes. Removes
 * backslashes that pattern_glob() does not need, so that equal patterns have equal spellings.
 */
static int read_value(struct query_parser *ps)
{
    const char *quote = NULL, *start = ps->at;
    buf_reset(&ps->scratch);
    for (; *ps->at; ps->at++) {
        char c = *ps->at;
        if (c == '"') {
            quote = quote ? NULL : ps->at;
            continue;
        }
        if (!quote && (query_is_blank(c) || c == ',' || c == ')'))
            break;
        if (!quote && c == '(')
            return query_fail(ps, EINVAL, ps->at, quote_hint, "\"(\" within a pattern");
        if (c == '\\') {
            c = *++ps->at;
            if (!c)
                return query_fail(ps, EINVAL, ps->at - 1, "write \\\\ for the character itself",
                                  "a backslash at the end");
            if (c == '*' || c == '?' || c == '\\')
                buf_addch(&ps->scratch, '\\');
        }
        if (query_is_blank(c) && c != ' ')
            return query_fail(ps, EINVAL, ps->at, "write ? instead", "a tab or line break within a pattern");
        buf_addch(&ps->scratch, c);
    }
    if (quote)
        return query_fail(ps, EINVAL, quote, NULL, "missing closing double quote");
    if (!ps->scratch.len)
        return query_fail(ps, EINVAL, start,
                          ps->at == start ? NULL : "write FIELD:* for any value, !FIELD:* for none",
                          "missing pattern or value");
    return 0;
}

static void take_pattern(struct query_parser *ps, enum query_type type, struct query_alt *alt)
{
    struct buf *patterns = &ps->query->patterns;
    alt->pattern = patterns->len;
    alt->anywhere = type != QUERY_TEXT && ps->scratch.data[0] != '/';
    if (alt->anywhere)
        buf_addstr(patterns, "*/");
    buf_add(patterns, ps->scratch.data, ps->scratch.len + 1);
}

static int take_number(struct query_parser *ps, enum query_type type, const char *where, const char *text,
                       int64_t *value)
{
    char hint[64];
    int rc = query_number_read(type, text, value);
    if (rc == -ERANGE)
        return query_fail(ps, EINVAL, where, NULL, "\"%.*s\" is too large", query_excerpt(text, strlen(text)),
                          text);
    snprintf(hint, sizeof(hint), "write for example %s", query_number_example(type));
    return rc ? query_fail(ps, EINVAL, where, hint, "\"%.*s\" is not %s", query_excerpt(text, strlen(text)),
                           text, query_number_name(type))
              : 0;
}

static int take_range(struct query_parser *ps, enum query_type type, const char *where, bool colon,
                      struct query_alt *alt)
{
    char *low = ps->scratch.data, *high = colon ? strstr(low, "..") : NULL;
    if (high) {
        *high = '\0';
        high += 2;
    }
    int rc = take_number(ps, type, where, low, &alt->low);
    if (rc)
        return rc;
    alt->high = alt->low;
    if (!high)
        return 0;
    rc = take_number(ps, type, where, high, &alt->high);
    if (!rc && alt->high < alt->low)
        rc = query_fail(ps, EINVAL, where, "write the smaller end first", "\"%.*s..%.*s\" is empty",
                        query_excerpt(low, strlen(low)), low, query_excerpt(high, strlen(high)), high);
    return rc;
}

/* Reads the alternatives behind the operator into the list of the query. */
static int parse_alts(struct query_parser *ps, enum query_type type, enum query_op op, bool colon)
{
    for (;;) {
        const char *where = ps->at;
        int rc = read_value(ps);
        if (rc)
            return rc;
        struct query_alt *alt = vec_push(&ps->query->alts);
        alt->op = op;
        if (query_type_is_text(type))
            take_pattern(ps, type, alt);
        else
            rc = take_range(ps, type, where, colon, alt);
        if (rc)
            return rc;
        if (*ps->at != ',')
            return 0;
        if (!colon)
            return query_fail(ps, EINVAL, ps->at, "write FIELD:THIS,THAT",
                              "a second value after a comparison");
        ps->at++;
    }
}

int query_term_parse(struct query_parser *ps)
{
    const char *name = ps->at, *after = name + query_name_len(name);
    size_t len = (size_t)(after - name);
    enum query_op op;
    bool colon;
    struct buf hint = BUF_INIT;
    int rc;

    if (len && *after == '!' && after[1] == '=')
        return query_fail(ps, EINVAL, after, "write !FIELD=VALUE", "\"!=\"");
    if (!len || !read_operator(&after, &op, &colon))
        return fail_no_term(ps);
    size_t field = query_field_find(ps->fields, ps->n_fields, name, len);
    if (field == QUERY_NO_FIELD) {
        query_field_suggest(ps->fields, ps->n_fields, name, len, &hint);
        rc = query_fail(ps, EINVAL, name, buf_str(&hint), "unknown field \"%.*s\"", query_excerpt(name, len),
                        name);
        buf_release(&hint);
        return rc;
    }
    enum query_type type = ps->fields[field].type;
    if (query_type_is_text(type) && !colon) {
        buf_printf(&hint, "write %s:PATTERN", ps->fields[field].name);
        rc = query_fail(ps, EINVAL, name + len, buf_str(&hint), "a comparison of the text field \"%.*s\"",
                        query_excerpt(name, len), name);
        buf_release(&hint);
        return rc;
    }
    size_t first_alt = ps->query->alts.len;
    ps->at = after;
    rc = parse_alts(ps, type, op, colon);
    if (rc)
        return rc;
    *vec_push(&ps->query->nodes) = (struct query_node){.kind = QUERY_TERM,
                                                       .type = type,
                                                       .span = 1,
                                                       .field = field,
                                                       .first_alt = first_alt,
                                                       .n_alts = ps->query->alts.len - first_alt};
    return 0;
}
