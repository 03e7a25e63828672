/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TEST_QUERY_H
#define TEST_QUERY_H

/*
 * What both query tests stand on: a table of fields, a subject, and short words to ask.
 */

#include "base/sigsafe/clause.h"
#include "base/sigsafe/pattern.h"
#include "query/query.h"

#include "base/buf.h"

#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { FUNC, FILE_, MODULE, SIZE, AGE, PID, N_FIELDS };

static const struct query_field fields[N_FIELDS] = {
    {"func", QUERY_TEXT, "a function on the stack"}, {"file", QUERY_PATH, "its source file"},
    {"module", QUERY_MODULE, "the file it is in"},   {"size", QUERY_SIZE, "bytes asked for"},
    {"age", QUERY_DURATION, "time since"},           {"pid", QUERY_NUMBER, "process"},
};

#define N_NUMBERS  (N_FIELDS - SIZE)
#define VALUES_MAX 3

struct subject {
    const char *texts[SIZE][VALUES_MAX]; /* by field; NULL: absent */
    bool has[N_NUMBERS];                 /* by field - SIZE */
    int64_t numbers[N_NUMBERS];
    size_t asked; /* how often the query wanted a field */
};

static inline void look_up(void *arg, size_t field, struct query_probe *probe)
{
    struct subject *s = arg;
    s->asked++;
    if (field >= SIZE && s->has[field - SIZE])
        query_offer_number(probe, s->numbers[field - SIZE]);
    for (size_t i = 0; field < SIZE && i < VALUES_MAX; i++)
        if (query_offer_text(probe, s->texts[field][i]))
            return;
}

static inline struct query *must_parse(const char *text)
{
    struct query *q;
    struct error err = {""};
    if (query_parse(&q, text, fields, N_FIELDS, &err, NULL))
        fail_msg("%s: %s", text, err.text);
    return q;
}

static inline bool matches(const char *text, struct subject s)
{
    struct query *q = must_parse(text);
    bool result = query_match(q, look_up, &s);
    query_free(q);
    return result;
}

static inline void assert_canonical(const char *text, const char *expected)
{
    struct query *q = must_parse(text);
    assert_string_equal(query_text(q), expected);
    query_free(q);
}

#define HAS_TEXT(f, ...) ((struct subject){.texts = {[f] = {__VA_ARGS__}}})
#define HAS_NUMBER(f, v) ((struct subject){.has = {[(f)-SIZE] = true}, .numbers = {[(f)-SIZE] = (v)}})
#define HAS_FUNC(...)    HAS_TEXT(FUNC, __VA_ARGS__)
#define HAS_FILE(f)      HAS_TEXT(FILE_, f)
#define HAS_MODULE(m)    HAS_TEXT(MODULE, m)
#define HAS_SIZE(b)      HAS_NUMBER(SIZE, b)
#define HAS_AGE(ns)      HAS_NUMBER(AGE, ns)
#define HAS_PID(p)       HAS_NUMBER(PID, p)
#define HAS_NOTHING      ((struct subject){.asked = 0})
#define TEST(name)       static void name(void **state __attribute__((unused)))
#define YES(text, ...)   assert_true(matches(text, __VA_ARGS__))
#define NO(text, ...)    assert_false(matches(text, __VA_ARGS__))

static inline char *repeat(const char *text, size_t n)
{
    struct buf all = BUF_INIT;
    while (n--)
        buf_addstr(&all, text);
    return buf_detach(&all);
}

#endif
