/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef QUERY_QUERY_H
#define QUERY_QUERY_H

/*
 * The one filter language (--where, set, watch): a text becomes a tree of terms, the tree is asked about subjects.
 * Pure: no I/O, no clock, no globals. What the fields are and where their values come from is the caller's affair.
 *
 * Runs in: the tool.
 * Threads: a parsed query never changes; any number of threads may match it at once.
 * Owns: a query owns all it points to; text, field table and subjects stay the caller's.
 * Invariant: parsing query_text(q) succeeds with the same table and gives a query with the same text and meaning.
 *
 *     query  = [ either ]                                 nothing at all matches everything
 *     either = all { "or" all }
 *     all    = item { item }                              blanks mean "and"
 *     item   = { "!" } ( "(" either ")" | term )
 *     term   = FIELD ":" pattern { "," pattern }          text: one pattern matches one value
 *            | FIELD ":" range { "," range }              numbers: one range holds the value
 *            | FIELD ( "=" | ">" | ">=" | "<" | "<=" ) VALUE
 *     range  = VALUE [ ".." VALUE ]                       both ends included
 *
 * allium-query(7) is the description for people: patterns, units, quoting, what an absent value means.
 *
 * Every term is true or false, there is no third state: a term is true when ONE of the field's values fits it, so on
 * an absent value it is false, and its negation true. Hence `!size>4k` is not `size<=4k` where size may be absent, and
 * on several values `!func:a` says that none of them is a.
 */

#include "base/buf.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QUERY_BYTES_MAX   65536 /* longer texts are refused */
#define QUERY_NESTING_MAX 64    /* parentheses within parentheses: bounds the stack of parse and match */

enum query_type {
    QUERY_TEXT,     /* the pattern matches the whole text */
    QUERY_PATH,     /* ... or what follows one of its slashes, unless the pattern begins with one */
    QUERY_MODULE,   /* as QUERY_PATH; also without .so and what follows, also without -VERSION before that */
    QUERY_SIZE,     /* bytes */
    QUERY_DURATION, /* nanoseconds */
    QUERY_NUMBER,   /* a plain whole number */
};

/** A field that queries may name. A table of these is the caller's and read only while parsing; a field's index there
 * is what the other functions know it by. */
struct query_field {
    const char *name; /* a letter, then letters, digits, _ and -; no other field's name, not "or" */
    enum query_type type;
    const char *doc; /* half a line for people; not read here */
};

struct query;
struct query_probe; /* one term that waits for values */

/**
 * Called by query_match() for each term it needs: offers the subject's value of that field to the probe, each of them
 * when there are several, none when it is absent. `field` is the index in the table the query was parsed with.
 */
typedef void (*query_lookup_fn)(void *subject, size_t field, struct query_probe *probe);

/** Offers a value to a field of a text type; NULL is no value. True: the term holds, further values change nothing. */
bool query_offer_text(struct query_probe *probe, const char *text);
/** Offers a value (bytes, ns or count, may be negative) to a field of a numeric type. True as above. */
bool query_offer_number(struct query_probe *probe, int64_t value);

/**
 * Reads `text` into a new query, which the caller frees with query_free(). Returns 0, or with *out = NULL:
 * -EINVAL, the text is not a query; -E2BIG, longer or deeper than the limits above. Then `err` says in one line what
 * is wrong, where, and what to write, and *column is the place, in bytes from 1. `err` and `column` may be NULL.
 */
int query_parse(struct query **out, const char *text, const struct query_field *fields, size_t n_fields,
                struct error *err, size_t *column);
void query_free(struct query *q);

/** Whether the query holds for the subject. Allocates nothing. */
bool query_match(const struct query *q, query_lookup_fn get, void *subject);
/** Whether a term of the query, negated or not, asks for the field: for callers that must refuse a combination. */
bool query_uses(const struct query *q, size_t field);

/* Of a field whose values a process does not know that judges for itself; and one whose values are the same for all
 * it judges. */
enum { QUERY_NOT_KNOWN = -1, QUERY_FIXED = -2 };
/**
 * Appends the query as a clause (base/sigsafe/clause.h). `ways`, by field, has an enum clause_field or one of the two
 * above; `get` is asked for fixed ones. False: it asks for what is not known, or for too much; what was appended means
 * nothing then.
 */
bool query_compile(const struct query *q, const int *ways, query_lookup_fn get, void *subject,
                   struct buf *out);
/** The query in its canonical spelling: one line, "" for the empty query. Owned by the query. */
const char *query_text(const struct query *q);

#endif
