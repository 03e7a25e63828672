/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef QUERY_QUERY_TREE_H
#define QUERY_QUERY_TREE_H

/*
 * The tree of a parsed query. For src/query only.
 *
 * Owns: struct query owns its vectors, its pattern bytes and its text. Invariant: `nodes` is the tree in
 * prefix order: a node's first child follows it, and a node with all nodes below it takes `span` places. A
 * group has two children or more. The depth is at most about twice QUERY_NESTING_MAX, so that a walk of the
 * tree may recurse. Two trees that differ may have the same spelling: `a (b c)` prints as `a b c`.
 */

#include "base/buf.h"
#include "base/sigsafe/pattern.h"
#include "base/vec.h"
#include "query/query.h"

enum query_kind {
    QUERY_ALL,  /* every child holds */
    QUERY_ANY,  /* one child holds */
    QUERY_TERM, /* a value of the field matches one of the alternatives */
};

struct query_node {
    enum query_kind kind;
    bool negated;
    enum query_type type; /* the field's type; this member and the next three are for terms only */
    size_t span;
    size_t field;
    size_t first_alt, n_alts; /* in `alts` */
};

enum query_op {
    QUERY_WITHIN, /* ":" and "=": low <= value <= high, or the pattern matches */
    QUERY_ABOVE,
    QUERY_AT_LEAST,
    QUERY_BELOW,
    QUERY_AT_MOST,
};

/* One alternative of a term: a pattern for the text types, else a comparison with `low`, or `low` and `high`. */
struct query_alt {
    enum query_op op;
    bool anywhere;  /* the pattern may begin after any slash: the bytes are "*" "/" and then the pattern */
    size_t pattern; /* offset in `patterns`, NUL-terminated */
    int64_t low, high;
};

struct query_nodes VEC(struct query_node);
struct query_alts VEC(struct query_alt);

struct query {
    struct query_nodes nodes; /* empty: the query that holds for everything */
    struct query_alts alts;
    struct buf patterns;
    struct buf text;
};

/** Returns whether terms of that type are patterns. */
static inline bool query_type_is_text(enum query_type type)
{
    return type == QUERY_TEXT || type == QUERY_PATH || type == QUERY_MODULE;
}

/** Returns how the pattern of an alternative is to be matched, as flags of pattern_fits(). */
unsigned query_alt_how(const struct query_node *term, const struct query_alt *alt);
/** Returns whether the node, with the nodes below it, holds for the subject. */
bool query_node_holds(const struct query *q, const struct query_node *node, query_lookup_fn get,
                      void *subject);
/** Appends the canonical spelling of the query. Field names come from the table that it was parsed with. */
void query_tree_print(const struct query *q, const struct query_field *fields, struct buf *out);

#endif
