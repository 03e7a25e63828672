/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef QUERY_PARSE_H
#define QUERY_PARSE_H

/*
 * The state of one parse, shared by parse.c (how terms combine) and term.c (one term). For src/query only.
 *
 * Owns: the scratch buffer; the query until the parse is done.
 */

#include "query/query_tree.h"

struct query_parser {
    const char *text; /* of the whole query */
    const char *at;   /* what is read next */
    const struct query_field *fields;
    size_t n_fields;
    size_t depth; /* open parentheses */
    struct query *query;
    struct buf scratch; /* the value being read */
    struct error *err;
    size_t *column;
};

/** Reports "query: WHAT at column N; HINT" for the place `where`; `hint` may be NULL. Returns -code. */
int query_fail(struct query_parser *ps, int code, const char *where, const char *hint, const char *what, ...)
    __attribute__((format(printf, 5, 6)));
/** How many of the `len` bytes a message may quote: not too many, and no UTF-8 character cut in two. */
int query_excerpt(const char *text, size_t len);

/** Reads one term and adds it to the query as one node. 0 or -EINVAL. */
int query_term_parse(struct query_parser *ps);
/** The length of the name (a field's, or a bare word) at `p`, 0 when there is none. */
size_t query_name_len(const char *p);

static inline bool query_is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static inline const char *query_skip_blanks(const char *p)
{
    while (query_is_blank(*p))
        p++;
    return p;
}

#endif
