/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef QUERY_QUERY_H
#define QUERY_QUERY_H

/*
 * The one filter language (--where, set, watch). A text becomes a tree of terms; a subject then matches the
 * tree or not. Pure: no I/O, no clock, no globals. The caller defines the fields and supplies their values.
 *
 * Runs in: the tool. Threads: a parsed query never changes; any number of threads may match it at once.
 * Owns: a query owns all that it points to; text, field table and subjects belong to the caller.
 * Invariant: parsing query_text(q) succeeds with the same table and gives a query with the same text and
 * meaning.
 *
 *     query  = [ either ]                                 an empty query matches everything
 *     either = all { "or" all }
 *     all    = item { item }                              blanks mean "and"
 *     item   = { "!" } ( "(" either ")" | term )
 *     term   = FIELD ":" pattern { "," pattern }          text: one pattern matches one value
 *            | FIELD ":" range { "," range }              numbers: one range holds the value
 *            | FIELD ( "=" | ">" | ">=" | "<" | "<=" ) VALUE
 *     range  = VALUE [ ".." VALUE ]                       both ends included
 *
 * allium-query(7) is the description for users: patterns, units, quoting, absent values.
 *
 * Every term is true or false; there is no third state. A term is true if at least one of the field's values
 * matches. So it is false if the value is absent, and then its negation is true. Hence `!size>4k` is not
 * `size<=4k` where size may be absent, and with several values `!func:a` says that none of them is a.
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

/** A field that queries may name. The table of fields belongs to the caller and is read only while parsing.
 * The other functions identify a field by its index in the table. */
struct query_field {
    const char *name; /* a letter, then letters, digits, _ and -; unique, and not "or" */
    enum query_type type;
    const char *doc; /* half a line for users; not read here */
};

struct query;
struct query_probe; /* one term that waits for values */

/**
 * Called by query_match() for each term whose value it needs. Offers the subject's value of that field to the
 * probe: each value when there are several, none when it is absent. `field` is the index in the table that
 * the query was parsed with.
 */
typedef void (*query_lookup_fn)(void *subject, size_t field, struct query_probe *probe);

/** Offers a value to a field of a text type; NULL means no value. Returns true if the term holds: further
 * values change nothing. */
bool query_offer_text(struct query_probe *probe, const char *text);
/** Offers a value (bytes, ns or count; it may be negative) to a field of a numeric type. Returns as
 * query_offer_text() does. */
bool query_offer_number(struct query_probe *probe, int64_t value);

/**
 * Reads `text` into a new query, which the caller frees with query_free(). Returns 0, or, with *out = NULL,
 * -EINVAL if the text is not a query, or -E2BIG if it is longer or deeper than the limits above. Then `err`
 * says in one line what is wrong, where, and what to write instead, and *column is the place, in bytes from
 * 1. `err` and `column` may be NULL.
 */
int query_parse(struct query **out, const char *text, const struct query_field *fields, size_t n_fields,
                struct error *err, size_t *column);
void query_free(struct query *q);

/** Returns whether the query holds for the subject. Allocates nothing. */
bool query_match(const struct query *q, query_lookup_fn get, void *subject);
/** Returns whether a term of the query, negated or not, uses the field: for callers that must refuse a
 * combination. */
bool query_uses(const struct query *q, size_t field);

#define QUERY_RANGES_MAX 8
/* Numbers from `low` to `high`, both included. */
struct query_range {
    int64_t low, high;
};
/**
 * Finds out which values of a number field the query allows: those outside are excluded by a term that must match. The
 * query may exclude more. Returns the number of ranges, which are disjoint and in order; 0: it allows no value.
 */
size_t query_ranges(const struct query *q, size_t field, struct query_range out[static QUERY_RANGES_MAX]);

/* How a field can be judged inside a process: QUERY_NOT_KNOWN, the process does not know its values;
 * QUERY_FIXED, its value is the same for all subjects in the process. */
enum { QUERY_NOT_KNOWN = -1, QUERY_FIXED = -2 };
/**
 * Appends the query as a clause (base/sigsafe/clause.h). `ways` has, for each field, an enum clause_field or
 * one of the two constants above; `get` supplies the fixed values. Returns false if the query uses an unknown
 * field or is too large; then the appended bytes are of no use.
 */
bool query_compile(const struct query *q, const int *ways, query_lookup_fn get, void *subject,
                   struct buf *out);
/** Returns the query in its canonical spelling: one line, "" for the empty query. The query owns it. */
const char *query_text(const struct query *q);

#endif
