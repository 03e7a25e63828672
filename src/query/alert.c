/* SPDX-License-Identifier: BSD-2-Clause */
#include "query/alert.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"
#include "query/parse.h"

struct reader {
    const char *text, *at;
    struct error *e;
    size_t *column;
};

static int fail(struct reader *r, const char *where, const char *what, const char *hint)
{
    size_t column = (size_t)(where - r->text) + 1;
    if (r->column)
        *r->column = column;
    const char *quote = *where ? ": \"" : "";
    int len = query_excerpt(where, strcspn(where, " \t\r\n"));
    /* quote only up to the first control character: the message is one line */
    for (int i = 0; i < len; i++)
        if ((unsigned char)where[i] < 0x20 || where[i] == 0x7f)
            len = i;
    return error_set(r->e, EINVAL, "alert: %s at column %zu%s%.*s%s; %s", what, column, quote, len, where,
                     *where ? "\"" : "", hint);
}

/* Skips the word if it comes next and is complete. Returns whether it did. */
static bool take_word(struct reader *r, const char *word)
{
    size_t len = strlen(word);
    const char *at = query_skip_blanks(r->at);
    if (strncmp(at, word, len) || query_name_len(at) != len)
        return false;
    r->at = at + len;
    return true;
}

/* Reads the next value, up to a blank, into `value`. */
static int take_value(struct reader *r, bool size, uint64_t *value)
{
    const char *at = query_skip_blanks(r->at);
    size_t len = strcspn(at, " \t\r\n");
    char *text = mem_strndup(at, len);
    int bad = size ? units_parse_size(text, value) : units_parse_duration(text, value);
    free(text);
    if (bad)
        return fail(r, at, *at ? (size ? "invalid size" : "invalid duration") : "missing value",
                    size ? "write 500M or 1.5GiB" : "write 30s, 5m or 1h30m");
    r->at = at + len;
    return 0;
}

static int parse_term(struct reader *r, struct alert_term *t)
{
    const char *begin = query_skip_blanks(r->at);
    int bad = 0;
    if (take_word(r, "growing")) {
        t->kind = ALERT_GROWING;
        t->for_ns = ALERT_GROWING_NS;
    } else if (take_word(r, "live")) {
        t->kind = ALERT_LIVE_ABOVE;
        r->at = query_skip_blanks(r->at);
        if (*r->at != '>' || r->at[1] == '=')
            return fail(r, r->at, "missing \">\"", "write live>1G");
        r->at++;
        bad = take_value(r, true, &t->bytes);
    } else {
        return fail(r, begin, *begin ? "unknown condition" : "missing condition",
                    "use live>SIZE or growing, each with or without \"for 5m\"");
    }
    if (!bad && take_word(r, "for"))
        bad = take_value(r, false, &t->for_ns);
    if (!bad)
        t->text = mem_strndup(begin, (size_t)(r->at - begin));
    return bad;
}

int alert_parse(struct alert *a, const char *text, struct error *e, size_t *column)
{
    struct reader r = {.text = text, .at = text, .e = e, .column = column};
    int bad;
    *a = (struct alert){.n = 0};
    do {
        r.at = query_skip_blanks(r.at);
        bad = a->n < ALERT_TERMS_MAX ? parse_term(&r, &a->terms[a->n])
                                     : fail(&r, r.at, "too many conditions", "use eight at most");
        a->n += !bad;
    } while (!bad && take_word(&r, "or"));
    r.at = query_skip_blanks(r.at);
    if (!bad && *r.at)
        bad = fail(&r, r.at, "unexpected text", "join conditions with \"or\"");
    if (bad)
        alert_release(a);
    return bad;
}

void alert_release(struct alert *a)
{
    for (size_t i = 0; i < a->n; i++)
        free(a->terms[i].text);
    a->n = 0;
}

static bool is_so(const struct alert_term *t, const struct alert_facts *f)
{
    if (t->kind == ALERT_GROWING)
        return f->growing_ns && f->growing_ns >= t->for_ns;
    return f->live_bytes > (double)t->bytes;
}

bool alert_judge(const struct alert_term *t, struct alert_state *s, const struct alert_facts *f)
{
    bool so = is_so(t, f), has_lasted = so && t->kind == ALERT_GROWING;
    /* if the clock was set back, the time counts from now on */
    if (so != s->holds || f->time_ns < s->since_ns)
        s->since_ns = f->time_ns;
    s->holds = so;
    if (!has_lasted && f->time_ns - s->since_ns < t->for_ns)
        return false;
    bool due = so && !s->reported;
    s->reported = so;
    return due;
}
