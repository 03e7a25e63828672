/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef QUERY_PARSE_H
#define QUERY_PARSE_H

/*
 * The state of one parse, shared by parse.c (combines terms) and term.c (reads one term). For src/query only.
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

/** Reports "query: WHAT at column N; HINT" for the position `where`; `hint` may be NULL. Returns -code. */
int query_fail(struct query_parser *ps, int code, const char *where, const char *hint, const char *what, ...)
    __attribute__((format(printf, 5, 6)));
/** Returns how many of the `len` bytes a message may quote: not too many, and without cutting a UTF-8
 * character. */
int query_excerpt(const char *text, size_t len);

/** Reads one term and adds it to the query as one node. Returns 0 or -EINVAL. */
int query_term_parse(struct query_parser *ps);
/** Returns the length of the name (of a field, or a bare word) at `p`; 0: there is none. */
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
