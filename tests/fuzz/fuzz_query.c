/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target of src/query: whatever parses must print, read back as itself and match like itself; whatever does not
 * must say where and why in one line. The bytes before the first NUL are the query, those behind it the values. The
 * same text is read as the condition of an alert, too, and the values are then what looks find. A query that a process
 * can judge for itself is compiled, and the clause must judge as the query does.
 */
#include "require.h"

#include "query/alert.h"
#include "query/query.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/sigsafe/clause.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct query_field fields[] = {
    {"func", QUERY_TEXT, ""},   {"file", QUERY_PATH, ""},    {"module", QUERY_MODULE, ""},
    {"size", QUERY_SIZE, ""},   {"age", QUERY_DURATION, ""}, {"n", QUERY_NUMBER, ""},
    {"absent", QUERY_TEXT, ""},
};
#define N_FIELDS (sizeof(fields) / sizeof(*fields))

struct subject {
    const char *values; /* NUL-terminated words */
    size_t bytes;
    int64_t number;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_up(void *arg, size_t field, struct query_probe *probe)
{
    const struct subject *s = arg;
    require(field < N_FIELDS, "a field out of the table");
    if (!strcmp(fields[field].name, "absent"))
        return;
    query_offer_number(probe, s->number);
    for (size_t at = 0; at < s->bytes; at += strlen(s->values + at) + 1)
        if (query_offer_text(probe, s->values + at))
            return;
}

static void check_error(const char *text, int rc, const char *prefix, const struct error *err, size_t column)
{
    require(rc == -EINVAL || rc == -E2BIG, "another code than EINVAL and E2BIG: %s", text);
    require(!strncmp(err->text, prefix, strlen(prefix)), "no prefix: %s", err->text);
    require(!strpbrk(err->text, "\t\n\r\033"), "more than one line: %s", err->text);
    require(column >= 1 && column <= strlen(text) + 1, "a column outside the text: %s", err->text);
}

static void check_query(const char *text, const struct query *q, struct subject *s)
{
    struct query *again;
    struct error err = {""};
    require(!query_parse(&again, query_text(q), fields, N_FIELDS, &err, NULL), "does not read back: %s",
            err.text);
    require(!strcmp(query_text(q), query_text(again)), "reads back as another: %s", text);
    require(query_match(q, look_up, s) == query_match(again, look_up, s),
            "matches otherwise when read back: %s", text);
    struct query_range ranges[QUERY_RANGES_MAX];
    for (size_t i = 0; i < N_FIELDS; i++) {
        const size_t n = query_ranges(q, i, ranges);
        require(n <= QUERY_RANGES_MAX, "more ranges than there is room for: %s", text);
        for (size_t k = 0; k < n; k++)
            require(ranges[k].low <= ranges[k].high && (!k || ranges[k - 1].high < ranges[k].low),
                    "ranges overlap, or are not in order: %s", text);
    }
    for (size_t i = 0; i < N_FIELDS; i++)
        require(query_uses(q, i) == query_uses(again, i), "uses other fields when read back: %s", text);
    query_free(again);
}

/* ---- clauses ---- */

/* Of a process that judges for itself, func, file and module are the value's first word. */
static struct clause_value first_word(void *arg, enum clause_field field)
{
    const struct subject *s = arg;
    require(field == CLAUSE_FUNC || field == CLAUSE_FILE || field == CLAUSE_MODULE,
            "a field that nothing was compiled for");
    return (struct clause_value){s->values, true};
}

/* What the query says of one value, the clause that it is compiled into says too. */
static void check_clause(const char *text, const struct query *q, const struct subject *s)
{
    static const int known[N_FIELDS] = {CLAUSE_FUNC, CLAUSE_FILE, CLAUSE_MODULE, QUERY_FIXED,
                                        QUERY_FIXED, QUERY_FIXED, QUERY_FIXED},
                     unknown[N_FIELDS] = {CLAUSE_FUNC,     CLAUSE_FILE,     CLAUSE_MODULE,  QUERY_NOT_KNOWN,
                                          QUERY_NOT_KNOWN, QUERY_NOT_KNOWN, QUERY_NOT_KNOWN};
    struct subject one = {.values = s->bytes ? s->values : "", .number = s->number};
    struct buf clause = BUF_INIT;
    one.bytes = strlen(one.values) + 1;
    if (query_compile(q, known, look_up, &one, &clause))
        require(clause_judge((const uint8_t *)clause.data, clause.len, first_word, &one) ==
                    (query_match(q, look_up, &one) ? CLAUSE_YES : CLAUSE_NO),
                "the clause judges otherwise: %s", text);
    buf_reset(&clause);
    if (query_compile(q, unknown, look_up, &one, &clause))
        for (size_t i = 3; i < N_FIELDS; i++)
            require(!query_uses(q, i), "compiled, though nobody knows the field: %s", text);
    buf_release(&clause);
}

/* ---- alerts ---- */

static void check_term(const char *text, const struct alert_term *t)
{
    struct alert again;
    require(!alert_parse(&again, t->text, NULL, NULL) && again.n == 1, "a term does not read back: %s",
            t->text);
    require(again.terms[0].kind == t->kind && again.terms[0].bytes == t->bytes &&
                again.terms[0].for_ns == t->for_ns && !strcmp(again.terms[0].text, t->text),
            "a term reads back as another: %s", text);
    alert_release(&again);
}

/* Every byte of the values is a look: it tells when it has held for its time, and then not before it was false as
 * long. */
static void check_judging(const char *text, const struct alert_term *t, const struct subject *s)
{
    struct alert_state state = {0};
    uint64_t now = 0, since = 0;
    bool grows = t->kind == ALERT_GROWING, held = false, told = false;
    for (size_t i = 0; i < s->bytes; i++) {
        unsigned byte = (unsigned char)s->values[i];
        uint64_t before = now;
        now = byte & 64 ? now / 2 : now + (t->for_ns / 4 + 1) * (byte >> 7);
        struct alert_facts f = {.time_ns = now,
                                .live_bytes = (double)t->bytes * (byte & 1 ? 1.1 : 1) + (byte & 1),
                                .growing_ns = byte & 2 ? t->for_ns + 1 : t->for_ns / 2};
        bool holds = grows ? byte & 2 : byte & 1;
        if (holds != held || (now < before && now < since))
            since = now;
        held = holds;
        bool settled = (grows && holds) || now - since >= t->for_ns, tells = settled && holds && !told;
        require(alert_judge(t, &state, &f) == tells, "an alert is judged otherwise: %s", text);
        if (settled)
            told = holds;
    }
}

static void check_alert(const char *text, const struct subject *s)
{
    struct alert a;
    struct error err = {""};
    size_t column = 0;
    int rc = alert_parse(&a, text, &err, &column);
    if (rc) {
        check_error(text, rc, "alert: ", &err, column);
        return;
    }
    require(a.n >= 1 && a.n <= ALERT_TERMS_MAX, "too many terms, or none: %s", text);
    for (size_t i = 0; i < a.n; i++) {
        check_term(text, &a.terms[i]);
        check_judging(text, &a.terms[i], s);
    }
    alert_release(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = mem_alloc(size + 1);
    struct error err = {""};
    struct query *q;
    size_t column = 0;
    if (size)
        memcpy(text, data, size);
    size_t len = strlen(text);
    struct subject s = {.values = text + len, .bytes = size - len};
    memcpy(&s.number, text, size < sizeof(s.number) ? size : sizeof(s.number));
    int rc = query_parse(&q, text, fields, N_FIELDS, &err, &column);
    if (rc) {
        check_error(text, rc, "query: ", &err, column);
    } else {
        check_query(text, q, &s);
        check_clause(text, q, &s);
    }
    query_free(q);
    check_alert(text, &s);
    free(text);
    return 0;
}
